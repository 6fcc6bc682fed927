"""Small model: a real language model, served to every process of a user by one server on this machine."""
