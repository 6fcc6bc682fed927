"""Retrieval: a run's documents as a library, built once, opened by every process, searched exactly."""
