"""Debates inside a Ray Data pipeline: rows in, judged rows out."""
