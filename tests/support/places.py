"""Folders of the project and of the recorded data beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
DATA = ROOT.parent / "shared" / "data"
"""Slices of public files; absent on most machines."""


def copy_sources(place: Path) -> None:
    """Copy the sources of a wheel to a new folder: setuptools leaves a `build` folder, whose old files the next wheel
    would contain."""
    place.mkdir()
    left_out = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__")
    for name in ("moot", "metrics", "protocols", "actors", "deploy"):
        shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=left_out)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, place / name)
