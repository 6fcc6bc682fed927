"""The agent: one role on one model. It renders a request, calls its backend and reads the reply."""
