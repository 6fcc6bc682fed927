"""Debate protocols and their contracts, tasks and prompts; no Ray, network or clock."""

if __name__ != "moot.protocols":
    raise ImportError(
        "import this package as `moot.protocols`, not `protocols`: two identities of one class break pickling"
    )
