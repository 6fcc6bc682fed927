"""A debate: the moderator that runs it, the floor that its protocol speaks to, and the engine inside one process."""
