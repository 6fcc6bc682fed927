"""Rubrics: what a judge of replies is told to look at, as data, and the panel that applies them."""
