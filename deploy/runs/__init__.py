"""Runs: configuration, checks, sessions, resuming and results."""
