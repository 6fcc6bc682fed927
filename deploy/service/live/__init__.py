"""Figures of a run in progress, from what is added to its record: of bounded size, whatever the run's length."""
