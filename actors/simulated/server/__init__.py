"""HTTP server of the simulated model."""
