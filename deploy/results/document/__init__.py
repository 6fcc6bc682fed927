"""Decision document of a debate on a subject."""
