"""Summaries of runs: figures, costs, and comparison of runs."""
