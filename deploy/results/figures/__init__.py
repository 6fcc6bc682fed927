"""Figures of runs, a file for each question: its model, its computation and its blocks."""
