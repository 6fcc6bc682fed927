"""Asks that end without a reply on record: what they may have cost is counted, and they are no repaid ones."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from simulate_server import simulated_server

import moot
from moot.actors.record.folder import RunFolder
from moot.deploy.running.bounds import spent_before
from moot.deploy.running.outcome import Run
from moot.deploy.running.prepare import prepare
from moot.deploy.running.session import Session

INLINE: dict[str, Any] = {"engine": "inline"}
PACKED: dict[str, Any] = {"engine": "ray", "placement": "packed"}
ACTORS: dict[str, Any] = {"engine": "ray", "placement": "actors"}


def _assert_all_told(run: Run, why: str) -> None:
    """Every ask of a run without any reply was abandoned with one attempt, and the sums say so."""
    events = [row for row in run.table("events").to_pylist() if row["kind"] in ("asked", "abandoned")]
    kinds = [row["kind"] for row in events]
    assert kinds.count("asked") == kinds.count("abandoned") > 0
    told = [json.loads(row["data"]) for row in events if row["kind"] == "abandoned"]
    assert {each["why"] for each in told} == {why}
    summary, at_most = run.summary, sum(each["tokens_at_most"] for each in told)
    assert summary.attempts_unconfirmed == sum(each["attempts"] for each in told) > 0
    assert summary.tokens_unconfirmed == (0, at_most)
    assert at_most > 0
    assert (summary.tokens_paid, summary.tokens_repaid) == (0, 0)
    assert spent_before(RunFolder(run.path), {}, [])["tokens"] == at_most, "a budget has to count it"


@pytest.mark.parametrize("engine", [INLINE, ACTORS], ids=["inline", "actors"])
def test_calls_that_a_debates_deadline_has_cancelled_are_unconfirmed(tmp_path: Path, engine: dict[str, Any]) -> None:
    with simulated_server(None, latency_ms=2_500.0) as port:
        done = moot.run(
            model=f"http://127.0.0.1:{port}/v1#m", out=tmp_path / "run", debate_timeout_s=1.0, limit=2, **engine
        )
    assert done.failed == 2
    _assert_all_told(done, "cancelled")


@pytest.mark.parametrize("engine", [INLINE, PACKED], ids=["inline", "packed"])
async def test_a_stop_leaves_calls_unconfirmed_and_none_repaid(
    tmp_path: Path, engine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.actors.arena.DRAIN_S", 0.2)
    with simulated_server(None, latency_ms=2_500.0) as port:
        options = {"model": f"http://127.0.0.1:{port}/v1#m", "out": str(tmp_path / "run"), "limit": 4, **engine}
        session = Session(prepare(moot.RunConfig.build(None, options)))
        holding = asyncio.create_task(session.hold())
        async with asyncio.timeout(60):
            while not session.debating:  # noqa: ASYNC110 - it is seen from outside only
                await asyncio.sleep(0.05)
        await asyncio.sleep(1.0)
        session.stop()
        stopped = await holding
    assert stopped.status == "interrupted"
    _assert_all_told(stopped, "cancelled")
