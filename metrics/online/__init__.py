"""Mergeable accumulators: each process has its own; up to rounding, the order of `merge` does not matter."""
