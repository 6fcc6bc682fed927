"""Telemetry of a process: logs, metrics, traces, and the named places where a test may end it."""
