"""One budget per run for the whole cluster: rates, concurrency and money, leased in bulk by one limiter."""
