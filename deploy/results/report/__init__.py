"""A report as blocks, and its renderers."""
