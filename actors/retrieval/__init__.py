"""Retrieval: document libraries, built once, opened by every process, with exact nearest-neighbour search."""
