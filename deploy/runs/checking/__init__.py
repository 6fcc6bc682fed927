"""Checking one claim, now: `moot check` and `moot.check`."""
