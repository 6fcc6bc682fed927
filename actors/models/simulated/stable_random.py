"""Stable randomness: numbers that depend on what is hashed, not on process, clock or order."""

from __future__ import annotations
