"""Runtime of debates: agents, judges, moderators, record writers, models, limits and remote actors."""

if __name__ != "moot.actors":
    raise ImportError("import this package as `moot.actors`, not `actors`: two identities of one class break pickling")
