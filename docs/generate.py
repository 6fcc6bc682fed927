"""Generates the reference pages from code and docstrings: `python docs/generate.py`; `--check` only compares.

Nothing below a page's marker is written by hand: a text that is wrong or missing is changed where the code has it.
Signatures and docstrings are read from the source, so that annotations stand as they are written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from generator.commands import commands_page
from generator.events import events_page
from generator.markdown import COMMAND, MARKER
from generator.metrics import metrics_page
from generator.names import names_page
from generator.python import python_page
from generator.record import record_page
from generator.settings import settings_page
from generator.source import ROOT

__all__ = ["COMMAND", "stale"]

REFERENCE = ROOT / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "commands.md": commands_page,
    "events.md": events_page,
    "metrics.md": metrics_page,
    "names.md": names_page,
    "python.md": python_page,
    "record.md": record_page,
}
"""The generated pages."""


def stale() -> dict[str, str]:
    """By name, the pages that are not as they would be generated now, with their new text."""
    known = {name: path.read_text("utf-8") for name in PAGES if (path := REFERENCE / name).exists()}
    heads = {name: text.partition(MARKER)[0] for name, text in known.items() if MARKER in text}
    made = {name: heads.get(name, "") + make() for name, make in PAGES.items()}
    return {name: text for name, text in made.items() if known.get(name) != text}


def main() -> int:
    """Write the pages that are stale, or name them."""
    found = stale()
    for name, text in found.items():
        print(REFERENCE.joinpath(name).relative_to(ROOT))
        if "--check" not in sys.argv:
            REFERENCE.mkdir(parents=True, exist_ok=True)
            REFERENCE.joinpath(name).write_text(text, "utf-8")
    return 1 if found and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
