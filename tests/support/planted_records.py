"""Records planted row by row: the rows of one owner of a folder, and the types of the fixtures."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from moot.actors.record.debate_result import DebateResult
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.rows import RowBuffer
from moot.deploy.studies.ablation.ablate import measure_grid
from moot.deploy.studies.ablation.grid import baseline_of, cells_of, parse_axes
from moot.deploy.studies.ablation.report import Ablation
from moot.protocols.case import Case, LabelledCase, Reference
from moot.protocols.evince import round_numbers
from moot.protocols.messages import Event

EVIL = "[bold red]x[/] \x1b[2J\x1b]0;title\x07 \u202egnp.exe\u202c\n```\n# out | <script>$x^2$ {0.__class__}"
"""Text of a model that looks like a terminal command, markup or a template."""

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2028\u2066-\u2069]")
"""Characters that must reach no terminal and no page."""

Command = Callable[..., tuple[int, str, str]]
"""Runs `moot` with arguments and standard input; returns exit code, standard output and standard error."""

Printed = Callable[..., str]
"""Output of a function that takes a console."""

GridOf = Callable[..., "PlantedGrid"]
"""An unplanted grid over some values."""

InlineRun = Callable[..., Path]
"""Folder of an inline run of a protocol with settings, on the simulated model."""


@dataclass
class PlantedSession:
    """Rows of one owner of a folder.

    Attributes:
        folders: folders to plant, in order.
        compacts: whether its journal is compacted, as at the end of a run.
    """

    cases: list[LabelledCase] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    events: list[tuple[str, int, Event, float]] = field(default_factory=list)
    closings: list[DebateResult] = field(default_factory=list)
    folders: Iterator[Path] = field(default_factory=lambda: iter(()), repr=False)
    compacts: bool = True

    def new(self) -> PlantedSession:
        """An empty session, planted in the next folder."""
        return PlantedSession(folders=self.folders)

    def plant(self, *later: PlantedSession, **run_yaml: Any) -> Path:
        """Plant a record with this session and later ones of other owners; returns its folder."""
        return plant(next(self.folders), (self, *later), run_yaml)

    def case(self, case_id: str, gold: str | None = "Yes", question: str = "", **fields: Any) -> None:
        """Register a case, by default with a question of its own."""
        reference = fields.pop("reference", Reference())
        case = Case(
            id=case_id, question=question or f"Is {case_id} it?", labels=fields.pop("labels", ("Yes", "No")), **fields
        )
        self.cases.append(LabelledCase(case, len(self.cases), gold, reference=reference))

    def reply(self, case_id: str, path: str, tokens: int | None, *, attempt: int = 0, **columns: Any) -> None:
        """Add a reply with `tokens` in total, one of them of the completion; None if the server did not report
        usage."""
        role = "/".join(path.partition("~")[0].split("/")[-2:])
        defaults = {
            "role": role if role.startswith("agent") else "judge/0",
            "model": "m",
            "outcome": "ok",
            "prompt_tokens": None if tokens is None else tokens - 1,
            "completion_tokens": None if tokens is None else 1,
            "reply_id": f"{case_id}-{attempt}-{path}",
        }
        self.replies.append({"case_id": case_id, "attempt": attempt, "path": path, **defaults, **columns})

    def said(self, case_id: str, path: str, answer: str, confidence: float, reasoning: str, tokens: int = 10) -> None:
        """Add an agent's position."""
        data = json.dumps({"answer": answer, "reasoning": reasoning, "confidence": confidence})
        self.reply(case_id, path, tokens, data=data, text=data, answer=answer)

    def event(self, case_id: str, kind: str, path: str, data: dict[str, Any] | None = None, attempt: int = 0) -> None:
        """Add an event."""
        self.events.append((case_id, attempt, Event(kind, path, data or {}), float(len(self.events))))

    def verdict(
        self, case_id: str, answer: str | None = "Yes", how: str = "judged", attempt: int = 0, **f: Any
    ) -> None:
        """Close a debate with a verdict."""
        self.closings.append(DebateResult(case_id=case_id, attempt=attempt, replies={}, answer=answer, how=how, **f))

    def evince(
        self,
        case_id: str,
        rounds: Sequence[tuple[float | None, Mapping[str, float], Mapping[str, float]]],
        *,
        crit: Sequence[tuple[float | None, float | None]] = (),
        words: Sequence[float | None] = (),
    ) -> None:
        """Add the `round` events of an EVINCE debate, with figures computed by the formulas.

        Args:
            rounds: per round kappa and the distributions of agent/0 and agent/1.
            crit: per round the score of each side; unknown if not given.
            words: per round the share of agreement phrases; unknown if not given.
        """
        for number, (kappa, first, second) in enumerate(rounds):
            scores = crit[number] if number < len(crit) else (None, None)
            data = evince_round(number, kappa, first, second, scores)
            data["agreement_words"] = words[number] if number < len(words) else None
            self.event(case_id, "round", f"round/{number}", data)


def evince_round(
    number: int,
    kappa: float | None,
    first: Mapping[str, float],
    second: Mapping[str, float],
    crit: tuple[float | None, float | None] = (None, None),
) -> dict[str, Any]:
    """Data of one `round` event."""
    sides, labels = ("agent/0", "agent/1"), [*sorted({*first, *second} - {"(other)"}), "(other)"]
    rows = np.array([[each.get(label, 0.0) for label in labels] for each in (first, second)])
    numbers = round_numbers.measure(sides, rows, None, 1e-6)
    return {
        "round": number,
        "kappa": kappa,
        "distributions": {"agent/0": dict(first), "agent/1": dict(second)},
        **numbers.record(),
        "entropy": dict(zip(sides, numbers.entropies, strict=True)),
        "information_gain": None if number == 0 else 0.1,
        "crit": dict(zip(sides, crit, strict=True)),
        "round_score": None,
        "moves": None if number == 0 else {"agent/0": 0.1, "agent/1": 0.2},
        "swapped": False,
    }


def plant(path: Path, sessions: Sequence[PlantedSession], run_yaml: dict[str, Any] | None = None) -> Path:
    """Write a record, each session under a new owner."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "run.yaml").write_text(yaml.safe_dump({"schema_version": 1}))
    for session in sessions:
        asyncio.run(_plant(path, session))
    (path / "run.yaml").write_text(yaml.safe_dump(run_yaml or {"schema_version": 1}))
    return path


def extend(path: Path, session: PlantedSession, owner: Ownership) -> None:
    """Write a session's rows to a record that this process owns."""
    asyncio.run(_write(path, session, owner))


async def _plant(path: Path, session: PlantedSession) -> None:
    owner = Ownership.acquire(RunFolder(path))
    try:
        await _write(path, session, owner)
    finally:
        owner.release()


async def _write(path: Path, session: PlantedSession, owner: Ownership) -> None:
    writer = RecordWriter(path, owner.epoch)
    await writer.load()
    await writer.register(session.cases)
    if session.replies:
        rows = RowBuffer("replies")
        for reply in session.replies:
            rows.append(**reply)
        writer.add_replies(rows.flush())
    writer.add_events(session.events)
    assert all(await writer.commit(session.closings))
    await writer.close(compact=session.compacts)


class PlantedGrid:
    """Plants the cells of an ablation in one folder, and measures them."""

    def __init__(self, folder: Path, session: PlantedSession, *over: str) -> None:
        self.folder, self.session = folder, session
        self.axes = parse_axes(over)
        self.cells = cells_of(self.axes)
        folder.mkdir()

    def plant(self, number: int, *sessions: PlantedSession, **run_yaml: Any) -> None:
        """Plant the sessions of a cell."""
        first, *later = sessions
        first.plant(*later, **run_yaml).rename(self.folder / self.cells[number].name)

    def measured(self, *baseline: str, **options: Any) -> Ablation:
        """Effects of the planted cells."""
        return measure_grid(self.folder, self.axes, self.cells, baseline_of(self.axes, baseline), **options)
