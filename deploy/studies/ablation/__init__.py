"""What each setting is worth: a grid of runs over the same cases, and the figures side by side."""
