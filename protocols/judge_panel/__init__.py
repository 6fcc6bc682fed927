"""The judge panel alone: replies that were given elsewhere, scored by several judges in several passes."""
