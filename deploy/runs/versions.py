"""Versions that a record names: those of installed packages, and the code's revision."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@cache
def installed_versions(*packages: str) -> dict[str, str]:
    """The versions of Python and of those packages that are installed, in this order; not to be changed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def code_revision() -> str | None:
    """The commit of the checkout that the package runs from; None when it is installed elsewhere."""
    git = Path(__file__).resolve().parents[2] / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        return head if name == head else (git / name).read_text().strip()
    except OSError:
        return None
