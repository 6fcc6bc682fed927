"""Thresholds from a record: the sweep, the choice, the held-out test."""
