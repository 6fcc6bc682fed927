"""Mergeable accumulators: each process keeps its own, and `merge` in any order gives the same."""
