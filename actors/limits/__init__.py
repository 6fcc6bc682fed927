"""Limits of a run over the whole cluster: rates, concurrency and budgets, leased in bulk by one limiter."""
