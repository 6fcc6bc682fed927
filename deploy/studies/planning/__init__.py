"""What a large run would take, from the record of a small one: a seeded simulation of its debates."""
