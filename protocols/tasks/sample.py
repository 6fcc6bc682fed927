"""What is bundled: cases written for moot, read as the user's own files are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from importlib.resources import files
from typing import IO

from moot.protocols.case import Criterion
from moot.protocols.tasks.essays import trait_cases
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.row import ParsedCase, Row
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import FileLayout

_ASSIGNMENT = "Write a letter to your headteacher: should the school day begin one hour later?"

_CRITERIA = (
    Criterion(
        trait="Ideas",
        lowest=0,
        highest=3,
        guide=(
            "3: a clear position, developed with several specific reasons or examples\n"
            "2: a position with some reasons, partly general\n"
            "1: a position with hardly a reason, or reasons that do not belong to it\n"
            "0: no position, or off the topic"
        ),
        assignment=_ASSIGNMENT,
    ),
    Criterion(
        trait="Organization",
        lowest=0,
        highest=3,
        guide=(
            "3: a beginning, a middle and a close, each step connected with the next\n"
            "2: an order that can be followed, with few connections\n"
            "1: hardly an order; sentences could change places\n"
            "0: no order"
        ),
        assignment=_ASSIGNMENT,
    ),
)


def _essay(row: Row) -> Iterator[ParsedCase]:
    ratings = {criterion.trait: list(map(float, row.texts(criterion.trait.lower()))) for criterion in _CRITERIA}
    return trait_cases(row.text("essay"), f"{row.file}-{row.identity()}", _CRITERIA, ratings)


SAMPLE_ESSAYS = FileLayout(jsonl_rows, _essay)
"""School essays on one assignment, two cases each."""


def bundled(name: str) -> Source:
    """The bundled file of a sample task. Raises nothing."""
    return Source(name, partial(_open, f"{name}.jsonl"))


def _open(file: str) -> AbstractContextManager[IO[bytes]]:
    return files("moot.protocols.tasks").joinpath("data", file).open("rb")
