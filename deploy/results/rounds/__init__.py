"""A debate's numbers round by round: as tables, as plots, and over a run."""
