"""Capacity planning: a large run is extrapolated from the record of a small one by a seeded simulation."""
