"""HTTP service for debates, judgments and checks: `moot serve`, and the Ray Serve application."""
