"""A run whose parts are other processes: Ray actors, and what travels between them."""
