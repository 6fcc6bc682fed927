"""Training of a classifier on the judges' summaries of finished runs."""
