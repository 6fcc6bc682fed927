"""Debates: the moderator that runs them, the floor that a protocol speaks to, and the inline engine."""
