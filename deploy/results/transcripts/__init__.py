"""Transcript of a debate: text, Markdown or data."""
