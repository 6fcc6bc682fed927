"""What is bundled: cases written for moot, read as the user's own files are."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from importlib.resources import files
from typing import IO

from moot.protocols.tasks.boolq import boolq_task
from moot.protocols.tasks.gsm8k import gsm8k_task
from moot.protocols.tasks.labelled_texts import labelled_texts_task
from moot.protocols.tasks.own_claims import own_claims_task
from moot.protocols.tasks.replies import replies_task
from moot.protocols.tasks.sample_essays import sample_essays
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.subjects import subjects_task
from moot.protocols.tasks.task import Task


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
