"""Presets: what each paper states of sampling, rounds, thresholds, judges and order, as data."""
