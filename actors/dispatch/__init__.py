"""Dispatchers: assign cases to moderators with a bound on open debates, from an iterator or from a queue."""
