"""A person at a terminal who moderates a debate: what they are shown and may type, and how it gets to the run."""
