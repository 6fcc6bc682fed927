"""The bundled essays: school essays written for moot, scored for two traits by two made-up raters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from moot.protocols.case import Criterion
from moot.protocols.tasks.essays import parse_essay, refer_essay, trait_rows
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

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


def sample_essays(source: Source, spec: str, name: str) -> Task:
    """A task over the essays, two cases each. Raises nothing."""
    return Task(
        spec=spec,
        name=name,
        path=source.file,
        labels=None,
        replayable=source.replayable,
        read=partial(_rows, source, name),
        parse=parse_essay,
        refer=refer_essay,
    )


def _rows(source: Source, name: str) -> Iterator[Row]:
    for row in jsonl_rows(source):
        ratings = {
            criterion.trait: [float(score) for score in row.texts(criterion.trait.lower())] for criterion in _CRITERIA
        }
        yield from trait_rows(row, row.text("essay"), f"{name}-{row.identity()}", _CRITERIA, ratings)
