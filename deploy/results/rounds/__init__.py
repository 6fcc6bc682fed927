"""Numbers of a debate round by round: as tables, as plots, and over a run."""
