"""Work on a case's long texts leaves the event loop, and gives the record that it gave there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.actors.record.tables import read_table
from moot.actors.simulated.model import SimulatedModel
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.long_texts import is_long

LONG = 4000
PIECES = ". " * (LONG // 16)
"""Short, but with so many sentences that a prompt which lists half of them is long."""

WORK = (
    "moot.actors.agent.request_fingerprint.first_messages",
    "moot.actors.debate.context.fingerprint",
    "moot.protocols.selene.evidence.subset_variants",
)


def counted(place: str, function: Callable[..., Any], on: dict[str, set[bool]]) -> Callable[..., Any]:
    """The function, which says whether it was called on this thread."""
    here = threading.get_ident()

    def wrapped(*args: Any, **options: Any) -> Any:
        on.setdefault(place, set()).add(threading.get_ident() == here)
        return function(*args, **options)

    return wrapped


async def turns(folder: Path, passage: str) -> dict[str, tuple[str, str, str]]:
    """By path what was sent, its fingerprint and the reply, of one debate with judges over perturbed evidence."""
    run = OpenRun(RunConfig.build({"engine": "inline", "protocol": "always-debate", "out": str(folder),
                                   "set": {"judging.method": "evidence-weighted", "judging.candidates": "every-agent",
                                           "judging.k": 2, "agents": 2}}))  # fmt: skip
    await run.open()
    try:
        held = await run.run_case(
            {"id": "a", "question": "is seven a prime", "labels": ["Yes", "No"], "passage": passage}
        )
    finally:
        await run.close()
    assert not held.failure
    rows = read_table(folder, "turns", ["path", "messages", "fingerprint", "text"]).to_pylist()
    return {row["path"]: (row["messages"], row["fingerprint"], row["text"]) for row in rows}


async def test_long_prompts_are_rendered_hashed_and_read_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.protocols.long_texts.LONG", LONG)
    on: dict[str, set[bool]] = {}
    for place in WORK:
        module, _, name = place.rpartition(".")
        monkeypatch.setattr(place, counted(place, getattr(__import__(module, fromlist=[name]), name), on))
    monkeypatch.setattr(SimulatedModel, "reply", counted("reply", SimulatedModel.reply, on))
    beside = await turns(tmp_path / "beside", PIECES)
    assert on == {place: {True, False} for place in (*WORK[:2], "reply")} | {WORK[2]: {False}}
    on.clear()
    await turns(tmp_path / "short", "It is so. It is not.")
    assert set().union(*on.values()) == {True}
    monkeypatch.setattr("moot.actors.models.off_loop.is_long", lambda texts: False)
    on.clear()
    assert await turns(tmp_path / "here", PIECES) == beside
    assert on["reply"] == {True}


def test_lists_without_a_text_are_long_when_there_are_many() -> None:
    """Else looking at them would itself take seconds."""
    assert is_long([[]] * 1_000_000)
    assert not is_long([[]] * 100)
