"""The warning that goes with results of the simulated model."""

SIMULATED = "simulated models: these figures show that the machinery works; they say nothing about any real model"
"""What is said wherever results of the simulated model are shown."""
