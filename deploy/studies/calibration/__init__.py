"""Calibration of thresholds from a record: grid search, selection, and evaluation on held-out cases."""
