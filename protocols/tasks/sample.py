"""The bundled sample: 72 yes/no questions written for moot, half of them Yes, as BoolQ plus an `id`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.resources import files
from typing import IO

from moot.protocols.tasks.boolq import boolq_task
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task


def sample_task() -> Task:
    """The sample; it needs no download and no path. Raises nothing."""
    return boolq_task(Source("sample", _open), spec="sample", name="sample")


def _open() -> AbstractContextManager[IO[bytes]]:
    return files("moot.protocols.tasks").joinpath("data", "sample.jsonl").open("rb")
