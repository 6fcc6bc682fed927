"""Simulated model: a stochastic model that debates, judges and moderates without a network or weights."""
