"""Dispatch: cases to moderators, with a bound on how many are open, from an iterator or from a queue."""
