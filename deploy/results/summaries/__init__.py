"""A run as a whole: its figures, costs, and other runs beside it."""
