"""A run's record, read for figures."""
