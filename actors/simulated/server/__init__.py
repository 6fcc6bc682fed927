"""The simulated model as an HTTP server."""
