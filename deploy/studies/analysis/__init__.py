"""Token confidence compared with judged reasoning: what `moot analyze` computes, from runs or from a user's table."""
