"""Confidence signals against judged reasoning: what `moot analyze` computes, from runs or from anybody's table."""
