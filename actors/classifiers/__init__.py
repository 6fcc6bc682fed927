"""Text classifiers of judges' summaries, loaded from folders."""
