"""Evaluation of hallucination detection over claims, beside trivial baselines."""
