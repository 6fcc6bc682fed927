"""Check of one claim: `moot check` and `moot.check`."""
