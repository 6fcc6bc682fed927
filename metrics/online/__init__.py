"""Accumulators that many processes keep on their own and that add up: `merge` in any order gives the same."""
