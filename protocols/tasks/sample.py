"""What is bundled: cases written for moot, read as the user's own files are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from importlib.resources import files
from typing import IO

from moot.protocols.case import Criterion
from moot.protocols.tasks.essays import parse_essay, refer_essay, trait_rows
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.labelled_texts import labelled_texts_task
from moot.protocols.tasks.own_claims import own_claims_task
from moot.protocols.tasks.public_questions import boolq_task, gsm8k_task
from moot.protocols.tasks.replies import replies_task
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.subjects import subjects_task
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


def sample_task() -> Task:
    """72 yes/no questions, half of them Yes, as BoolQ plus an `id`. Raises nothing."""
    return boolq_task(_bundled("sample"), spec="sample", name="sample")


def sample_subjects_task() -> Task:
    """Eight subjects from different fields, some with facts. Raises nothing."""
    return subjects_task(_bundled("sample-subjects"), spec="sample-subjects", name="sample-subjects")


def sample_symptoms_task() -> Task:
    """40 descriptions of complaints, four of each of ten common conditions. Raises nothing."""
    return labelled_texts_task(_bundled("sample-symptoms"), spec="sample-symptoms", name="sample-symptoms")


def sample_replies_task() -> Task:
    """Twelve replies to judge, good and bad ones, with what they answer. Raises nothing."""
    return replies_task(_bundled("sample-replies"), spec="sample-replies", name="sample-replies")


def sample_essays_task() -> Task:
    """Eight made-up school essays on one assignment, two traits each, with the scores of two made-up raters.

    Raises nothing.
    """
    return sample_essays(_bundled("sample-essays"), spec="sample-essays", name="sample-essays")


def sample_problems_task() -> Task:
    """24 arithmetic word problems with worked solutions, as GSM8K plus an `id`. Raises nothing."""
    return gsm8k_task(_bundled("sample-problems"), spec="sample-problems", name="sample-problems")


def sample_claims_task() -> Task:
    """40 claims, a right and a wrong one about each of 20 passages, four of which hold a conflict. Raises nothing."""
    return own_claims_task(_bundled("sample-claims"), spec="sample-claims", name="sample-claims")


def _bundled(name: str) -> Source:
    return Source(name, partial(_open, f"{name}.jsonl"))


def _open(file: str) -> AbstractContextManager[IO[bytes]]:
    return files("moot.protocols.tasks").joinpath("data", file).open("rb")
