"""Weights on disk, run by transformers inside the actor."""
