"""`python -m moot` is the same as the `moot` command."""

from moot.deploy.cli.main import main

if __name__ == "__main__":
    main()
