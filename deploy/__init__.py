"""User interfaces: command line, runs, results, studies, HTTP service and operations."""

if __name__ != "moot.deploy":
    raise ImportError("import this package as `moot.deploy`, not `deploy`: two identities of one class break pickling")
