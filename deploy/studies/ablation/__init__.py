"""Ablation: a grid of runs over the same cases, and the effect of each setting."""
