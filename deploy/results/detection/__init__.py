"""How well a run tells hallucinated claims from supported ones, beside what costs nothing."""
