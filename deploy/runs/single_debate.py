"""Debate of a single question: `moot.debate`."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from moot.actors.debate.run_spec import Engine
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.folder import RunFolder
from moot.actors.record.recovery import recorded_results
from moot.actors.record.tables import read_table
from moot.actors.record.writer_cache import WriterCache
from moot.deploy.runs.run import arun
from moot.deploy.runs.run_folders import check_folder, default_out
from moot.protocols.errors import ConfigError
from moot.protocols.regular_files import cause, read_regular_text


class Debated(DebateResult, frozen=True, kw_only=True):
    """Result of a single debate: its `DebateResult`, with the replies and the folder of its record.

    Attributes:
        answer: the answer; None without one.
        how: how the answer was reached, such as `skipped` or `stable-agree`.
        confidence: confidence in the answer, in [0, 1]; None if unknown.
        distribution: probability per label; None if the protocol gives none.
        rounds: debate rounds after the independent answers.
        flags: notable conditions.
        payload: the protocol's own result.
        failure, error: why there is no verdict; empty if there is one.
        calls: number of replies that the verdict is based on.
        tokens: tokens of those replies; a lower bound if `calls_without_usage` is not 0.
        wall_s: seconds from the debate's start to its verdict.
        simulated: whether the simulated model replied; the answer then means nothing.
        turns: the replies: rows with `path`, `role`, `model`, `text` and `answer`, in chronological order.
        path: the record's folder; None if no record was kept.
    """

    tokens: int
    simulated: bool
    turns: tuple[Mapping[str, Any], ...]
    path: Path | None


async def debate(
    question: str,
    passage: str = "",
    labels: Sequence[str] | None = ("Yes", "No"),
    *,
    out: str | Path | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> Debated:
    """Debate one question.

    Args:
        passage: the evidence; may be empty.
        labels: the closed set of answers; None for a free-text answer.
        out: the record's folder; None keeps no record.
        engine: `ray` or `inline`; None means `ray` if this process has joined a Ray cluster, else `inline`.
        options: as for `moot.run`, such as `protocol`, `model`, `roles` and `set`; except for cases.

    Raises:
        UserError: the input is invalid, or a model cannot be used.
    """
    case = Subject(question, passage, labels).case()
    check_folder(out)
    with TemporaryDirectory(prefix="moot-") as scratch:
        folder = out or Path(scratch) / "run"
        done = await arun(**{"task": [case], "out": folder, "engine": engine or default_engine(), **options})
        return _read(done.path, keep=out is not None)


def default_engine() -> Engine:
    """Default engine of a single call: `ray` if this process has joined a Ray cluster, else `inline`."""
    ray = sys.modules.get("ray")
    return "ray" if ray is not None and ray.is_initialized() else "inline"


def _read(folder: Path, *, keep: bool) -> Debated:
    from moot.deploy.results.run_info import read_run_info

    result = recorded_results(RunFolder(folder), [CASE_ID], WriterCache())[CASE_ID]
    columns = ["path", "role", "model", "text", "answer"]
    turns = read_table(folder, "turns", [*columns, "at"]).to_pylist()
    turns.sort(key=lambda turn: (turn["at"] or 0.0, turn["path"]))
    current = [t for t in turns if t["attempt"] == result.attempt and not t["superseded"]]
    return Debated(
        **msgspec.structs.asdict(result),
        tokens=result.prompt_tokens + result.completion_tokens,
        simulated=read_run_info(folder).simulated,
        turns=tuple({name: t[name] for name in columns} for t in current),
        path=folder if keep else None,
    )


CASE_ID = "question"
"""Id of the only case."""

_MAX_SLUG = 40
"""Maximum length of a question's slug in characters."""


@dataclass(frozen=True)
class Subject:
    """Subject of one debate.

    Attributes:
        question: the subject or question.
        passage: facts for the debate; may be empty.
        labels: the closed set of answers; None for a free-text answer.
    """

    question: str
    passage: str = ""
    labels: Sequence[str] | None = None

    def case(self) -> dict[str, Any]:
        """The case as a row of a task."""
        return {"id": CASE_ID, "question": self.question, "passage": self.passage, "labels": self.labels}

    @property
    def name(self) -> str:
        """Slug of the question, and a hash of the whole subject.

        >>> Subject("Should cities ban cars?").name
        'should-cities-ban-cars-efacaf60'
        """
        words = re.sub(r"[^a-z0-9]+", "-", self.question.casefold()).strip("-")
        slug = words[:_MAX_SLUG]
        if len(words) > _MAX_SLUG:  # cut at a whole word
            slug = slug.rpartition("-")[0] or slug
        given = json.dumps([self.question, self.passage, list(self.labels) if self.labels is not None else None])
        digest = hashlib.sha256(given.encode()).hexdigest()[:8]
        return f"{slug}-{digest}" if slug else digest


def default_debate_out(protocol: str, subject: Subject, seed: int, model: str, *, new: bool) -> str:
    """Default folder of a subject's debate: the latest existing one, or a new one."""
    first = default_out(protocol.replace(":", "-"), subject.name, seed, model)
    number = 1
    while Path(_numbered(first, number)).exists():
        number += 1
    return _numbered(first, number if new else max(number - 1, 1))


def _numbered(first: str, number: int) -> str:
    return first if number == 1 else f"{first}-{number}"


def read_facts_file(file: Path) -> str:
    """Read facts from a text file.

    Raises:
        ConfigError: it cannot be read, or is not UTF-8 text.
    """
    try:
        return read_regular_text(file).strip()
    except UnicodeDecodeError:
        raise ConfigError(f"--facts {file}: expected UTF-8 text, found other bytes") from None
    except OSError as error:
        raise ConfigError(f"--facts {file}: {cause(error)}") from None
