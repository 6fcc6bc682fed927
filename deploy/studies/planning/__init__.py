"""Capacity planning of a large run from the record of a small one: a seeded simulation of its debates."""
