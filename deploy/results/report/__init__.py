"""Reports: their blocks, and renderers of these."""
