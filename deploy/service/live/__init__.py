"""Figures of a run under way, from what is added to its record: of bounded size, whatever the run's length."""
