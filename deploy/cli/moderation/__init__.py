"""Interactive moderation of a debate at a terminal."""
