"""EVINCE: debates of distributions over a closed set of labels, moderated by information-theoretic metrics."""
