"""The simulated model: a random model that debates, judges and moderates without a network or weights."""
