"""Rubrics: criteria for judges of replies, as data, and the panel that applies them."""
