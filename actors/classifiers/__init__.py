"""Classifiers of judges' summaries: their folders, loaded for a run."""
