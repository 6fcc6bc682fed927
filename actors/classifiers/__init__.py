"""Classifiers of judges' summaries: their folders, opened for a run."""
