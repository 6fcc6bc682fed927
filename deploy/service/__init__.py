"""Debates, panels of judges and checks of claims over HTTP: `moot serve`, and the Ray Serve application."""
