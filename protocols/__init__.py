if __name__ != "moot.protocols":
    raise ImportError(
        "import this package as `moot.protocols`, not `protocols`: two identities of one class break pickling"
    )

"""What is debated and how: contracts, tasks, prompts and the debate protocols. No Ray, no network, no clock."""
