"""Telemetry of a process: logs, metrics, traces, and failpoints for tests."""
