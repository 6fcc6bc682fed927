"""Versions for a record: those of installed packages, and the code's revision."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@cache
def installed_versions(*packages: str) -> dict[str, str]:
    """Versions of Python and of the installed ones of these packages, in this order; cached, do not modify it."""
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def code_revision() -> str | None:
    """Commit of the checkout that the package runs from; None outside of a checkout."""
    git = Path(__file__).resolve().parents[2] / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        return head if name == head else (git / name).read_text().strip()
    except OSError:
        return None
