"""Where the project lies, and the recorded data beside it."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
DATA = ROOT.parent / "shared" / "data"
"""Slices of public files; absent on most machines."""
