if __name__ != "moot.actors":
    raise ImportError("import this package as `moot.actors`, not `actors`: two identities of one class break pickling")

"""What runs: agents, judges, moderators, the record's writers, and the mailboxes and models between them."""
