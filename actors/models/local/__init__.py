"""Local models: weights on disk, run by transformers inside the actor."""
