"""Statistical metrics: arrays in, numbers out; an unknown value is NaN or None, never 0."""

if __name__ != "moot.metrics":
    raise ImportError(
        "import this package as `moot.metrics`, not `metrics`: two identities of one class break pickling"
    )
