"""The figures of the analysis."""
