"""Ray runtime: the actors of a run, and the messages between them."""
