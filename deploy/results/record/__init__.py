"""Readers of a run's record for figures."""
