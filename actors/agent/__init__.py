"""Agents: one role on one model each. An agent renders a request, calls its backend and parses the reply."""
