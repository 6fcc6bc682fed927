"""Records to show: planted row by row, or made by the inline engine on the simulated model."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
import yaml
from rich.console import Console
from scipy.special import rel_entr

from moot.actors.arena import Arena, Past
from moot.actors.inline import InlineRuntime
from moot.actors.record.closing import Closing
from moot.actors.record.folder import Ownership, RunFolder
from moot.actors.record.recorder import Recorder
from moot.actors.record.rows import Rows
from moot.actors.roles import RoleBinding
from moot.actors.spec import RunSpec
from moot.protocols.case import Case, LabelledCase, Reference
from moot.protocols.messages import Event
from moot.protocols.registry import make_protocol
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

sys.path.insert(0, str(Path(__file__).parent))  # test folders are no packages


_commands = cache(typer.main.get_command)


@pytest.fixture(scope="module", autouse=True)
def _nobody_waits_longer_than_he_works() -> Iterator[None]:
    """A run in this process gathers no verdicts for a tenth of a second before it makes them durable and hands them on:
    most runs here are of a few cases, and would wait longer than they work. The tree of commands is built once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", _commands)
        patch.setattr("moot.actors.record.journal._COMMIT_S", 0.01)
        patch.setattr("moot.actors.moderator._LINGER_S", 0.01)
        yield


Command = Callable[..., tuple[int, str, str]]
"""Runs `moot` with some arguments and given standard input: exit code, standard output, standard error."""


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Commands of this process, in an empty folder."""

    def run(*arguments: str, given: str = "") -> tuple[int, str, str]:
        from moot.deploy.cli import main as cli

        monkeypatch.setattr(sys, "argv", ["moot", *arguments])
        if given:
            monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return run


@dataclass
class Session:
    """What one owner of a folder writes."""

    cases: list[LabelledCase] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    events: list[tuple[str, int, Event, float]] = field(default_factory=list)
    closings: list[Closing] = field(default_factory=list)

    def case(self, case_id: str, gold: str | None = "Yes", question: str = "Is it?", **fields: Any) -> None:
        """Register a case."""
        reference = fields.pop("reference", Reference())
        case = Case(id=case_id, question=question, labels=fields.pop("labels", ("Yes", "No")), **fields)
        self.cases.append(LabelledCase(case, len(self.cases), gold, reference=reference))

    def reply(self, case_id: str, path: str, tokens: int | None, *, attempt: int = 0, **columns: Any) -> None:
        """A reply with `tokens` in all, one of them of the completion; None: the server did not say."""
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
        """An agent's position."""
        data = json.dumps({"answer": answer, "reasoning": reasoning, "confidence": confidence})
        self.reply(case_id, path, tokens, data=data, text=data, answer=answer)

    def event(self, case_id: str, kind: str, path: str, data: dict[str, Any] | None = None, attempt: int = 0) -> None:
        """Note an event."""
        self.events.append((case_id, attempt, Event(kind, path, data or {}), float(len(self.events))))

    def verdict(
        self, case_id: str, answer: str | None = "Yes", how: str = "judged", attempt: int = 0, **f: Any
    ) -> None:
        """Close a debate."""
        self.closings.append(Closing(case_id=case_id, attempt=attempt, replies={}, answer=answer, how=how, **f))

    def evince(
        self,
        case_id: str,
        rounds: Sequence[tuple[float | None, Mapping[str, float], Mapping[str, float]]],
        *,
        crit: Sequence[tuple[float | None, float | None]] = (),
        words: Sequence[float | None] = (),
    ) -> None:
        """The `round` events of an EVINCE debate, its numbers as the formulas give them.

        Args:
            rounds: kappa and the distributions of agent/0 and agent/1, round by round.
            crit: score per side, round by round; unknown where there is none.
            words: share of agreement phrases, likewise.
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
    """The data of one `round` event; zero probabilities are floored at 1e-6 for KL."""
    labels = sorted({*first, *second})
    p, q = (np.array([each.get(label, 0.0) for label in labels]) for each in (first, second))
    mixture, floored = (p + q) / 2, [np.maximum(each, 1e-6) for each in (p, q)]
    entropies = [float(-(each[each > 0] * np.log(each[each > 0])).sum()) for each in (p, q, mixture)]
    kl = {
        "agent/0>agent/1": float(rel_entr(p, floored[1]).sum()),
        "agent/1>agent/0": float(rel_entr(q, floored[0]).sum()),
    }
    sides = ("agent/0", "agent/1")
    tv = float(np.abs(p - q).sum() / 2)
    zeros = sum(bool(((one > 0) & (other == 0)).any()) for one, other in ((p, q), (q, p)))
    return {
        "round": number, "kappa": kappa, "distributions": {"agent/0": dict(first), "agent/1": dict(second)},
        "wd": tv, "tv": tv, "jsd": float(rel_entr(p, mixture).sum() + rel_entr(q, mixture).sum()) / 2,
        "mi": 0.4, "nmi": 0.3, "kl": kl, "kl_floored": zeros,
        "ce": {pair: value + h for (pair, value), h in zip(kl.items(), entropies, strict=False)},
        "entropy": dict(zip(sides, entropies, strict=False)), "mixture_entropy": entropies[2],
        "information_gain": None if number == 0 else 0.1, "crit": dict(zip(sides, crit, strict=True)),
        "round_score": None, "moves": None if number == 0 else {"agent/0": 0.1, "agent/1": 0.2}, "swapped": False,
        "agreement_words": None,
    }  # fmt: skip


def plant(path: Path, sessions: Sequence[Session], run_yaml: dict[str, Any] | None = None) -> Path:
    """Write a record, each session by an owner of its own."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "run.yaml").write_text(yaml.safe_dump(run_yaml or {"schema_version": 1}))
    for session in sessions:
        asyncio.run(_plant(path, session))
    return path


async def _plant(path: Path, session: Session) -> None:
    owner = Ownership.take(RunFolder(path))
    try:
        recorder = Recorder(path, owner.epoch)
        await recorder.load()
        await recorder.register(session.cases)
        if session.replies:
            rows = Rows("replies")
            for reply in session.replies:
                rows.append(**reply)
            recorder.add_replies(rows.take())
        recorder.add_events(session.events)
        assert all(await recorder.commit(session.closings))
        await recorder.close()
    finally:
        owner.release()


@pytest.fixture
def planted(tmp_path: Path) -> Callable[..., Path]:
    """Plants sessions in a new folder."""
    count = iter(range(1000))

    def make(*sessions: Session, **run_yaml: Any) -> Path:
        return plant(tmp_path / f"run{next(count)}", sessions, run_yaml)

    return make


@pytest.fixture
def session() -> Session:
    """An empty session to plant."""
    return Session()


async def _inline(folder: Path, protocol: str, settings: dict[str, Any]) -> None:
    owner = Ownership.take(RunFolder(folder))
    spec = RunSpec(
        protocol=protocol,
        roles={"agent": [RoleBinding(top_logprobs=5)], "judge": [RoleBinding()]},
        templates=Templates().sources,
        task="sample",
        seed=1,
        encoder="hashed-ngrams-512-v1",
        folder=str(folder),
        epoch=owner.epoch,
    )
    runtime = InlineRuntime(spec, make_protocol(protocol, settings))
    await runtime.start()
    await Arena(runtime, islice(open_task("sample").cases(), 40), Past({}, {})).run()
    await runtime.stop()
    owner.release()


@pytest.fixture(scope="session")
def inline_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A run over most of the bundled sample on the simulated model; one per protocol, settings and test session."""
    made: dict[str, Path] = {}

    def make(protocol: str = "selene", **settings: Any) -> Path:
        key = f"{protocol} {sorted(settings.items())}"
        if key not in made:
            folder = tmp_path_factory.mktemp("inline") / "run"
            facts = {"schema_version": 1, "task": "sample", "protocol": protocol, "simulated": True, "seed": 1}
            dotted = {name.replace("__", "."): value for name, value in settings.items()}
            folder.mkdir()
            (folder / "run.yaml").write_text(yaml.safe_dump(facts))
            asyncio.run(_inline(folder, protocol, dotted))
            made[key] = folder
        return made[key]

    return make


@pytest.fixture
def printed() -> Callable[..., str]:
    """What a function that takes a console writes to it, as a terminal would get it."""

    def run(function: Callable[..., None], *args: Any, width: int = 120, **kwargs: Any) -> str:
        sink = io.StringIO()
        function(*args, **kwargs, console=Console(file=sink, width=width, force_terminal=True, color_system=None))
        return sink.getvalue()

    return run


@pytest.fixture
def outside_fences() -> Callable[[str], list[str]]:
    """Lines of Markdown outside of fenced blocks."""
    return _outside_fences


def _outside_fences(markdown: str) -> list[str]:
    """Lines outside of fenced blocks, by CommonMark's rule for closing fences."""
    outside, fence = [], ""
    for line in markdown.splitlines():
        ticks = re.match(r" {0,3}(`{3,})", line)
        if not fence and ticks and "`" not in line[ticks.end() :]:
            fence = ticks[1]
        elif fence:
            if ticks and len(ticks[1]) >= len(fence) and not line[ticks.end() :].strip():
                fence = ""
        else:
            outside.append(line)
    assert not fence, "a fence was left open"
    return outside
