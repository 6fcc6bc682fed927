"""Holding a run: configuration, checks, the session, resuming, and what comes out."""
