"""Bundled samples: cases written for moot, read like users' own files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from importlib.resources import files
from typing import IO

from moot.protocols.tasks.essays import criteria_of, trait_cases
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.row import ParsedCase, Row
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import FileLayout

_ASSIGNMENT = "Write a letter to your headteacher: should the school day begin one hour later?"

_TRAITS = {
    "Ideas": (
        "a clear position, developed with several specific reasons or examples",
        "a position with some reasons, partly general",
        "a position with hardly a reason, or reasons that do not belong to it",
        "no position, or off the topic",
    ),
    "Organization": (
        "a beginning, a middle and a close, each step connected with the next",
        "an order that can be followed, with few connections",
        "hardly an order; sentences could change places",
        "no order",
    ),
}

_CRITERIA = criteria_of(_TRAITS, 3, _ASSIGNMENT)


def _essay(row: Row) -> Iterator[ParsedCase]:
    ratings = {criterion.trait: list(map(float, row.texts(criterion.trait.lower()))) for criterion in _CRITERIA}
    return trait_cases(row.text("essay"), f"{row.file}-{row.identity()}", _CRITERIA, ratings)


SAMPLE_ESSAYS = FileLayout(jsonl_rows, _essay)
"""School essays on one assignment, two cases each."""


def bundled(name: str) -> Source:
    """Bundled file of a sample task. Raises nothing."""
    return Source(name, partial(_open, f"{name}.jsonl"))


def _open(file: str) -> AbstractContextManager[IO[bytes]]:
    return files("moot.protocols.tasks").joinpath("data", file).open("rb")
