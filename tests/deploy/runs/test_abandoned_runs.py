"""Asks that end without a reply on record: what they may have cost is counted, and they are no repaid ones."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from openai_server import server_for_trials, simulated_server, stats_of
from server_client import until
from small_runs import stable_rows

import moot
from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.record.folder import RunFolder
from moot.actors.simulated.answer_key import AnswerKey
from moot.deploy.runs.limits import spent_by_earlier_sessions
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.session import Session
from moot.protocols.tasks import open_task

KEY = AnswerKey.from_cases(open_task("sample").cases())
INLINE: dict[str, Any] = {"engine": "inline"}
ON_RAY = [pytest.mark.slow, pytest.mark.ray]
PACKED = pytest.param({"engine": "ray", "placement": "packed", "cluster": {"moderators": 1}}, id="packed", marks=ON_RAY)
ACTORS = pytest.param({"engine": "ray", "placement": "actors"}, id="actors", marks=ON_RAY)


def _assert_all_reported(run: Run, why: str) -> None:
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
    assert spent_by_earlier_sessions(RunFolder(run.path), {}, [])["tokens"] == at_most, "a budget has to count it"


@pytest.mark.parametrize(
    ("engine", "deadline_s"),
    [
        pytest.param(INLINE, 0.5, id="inline"),
        pytest.param({"engine": "ray", "placement": "actors"}, 8.0, id="actors, where calls begin later", marks=ON_RAY),
    ],
)
def test_calls_that_a_debates_deadline_has_cancelled_are_unconfirmed(
    tmp_path: Path, engine: dict[str, Any], deadline_s: float
) -> None:
    with server_for_trials() as port:
        model, out = f"http://127.0.0.1:{port}/v1#m", tmp_path / "run"
        done = moot.run(model=model, out=out, structured="off", debate_timeout_s=deadline_s, limit=2, **engine)
    assert done.failed == 2
    _assert_all_reported(done, "cancelled")


@pytest.mark.parametrize("engine", [INLINE, PACKED])
async def test_a_stop_leaves_calls_unconfirmed_and_none_repaid(
    tmp_path: Path, engine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.actors.dispatch.dispatcher.DRAIN_S", 0.2)
    with server_for_trials() as port:
        model, out = f"http://127.0.0.1:{port}/v1#m", str(tmp_path / "run")
        options = {"model": model, "out": out, "structured": "off", "limit": 4, **engine}
        session = Session(prepare(moot.RunConfig.build(None, options)))
        holding = await _debating(session)
        await until(lambda: stats_of(port)["in_flight"])
        session.stop()
        stopped = await holding
    assert stopped.status == "interrupted"
    _assert_all_reported(stopped, "cancelled")


async def _debating(session: Session) -> asyncio.Task[Run]:
    """The session at work, from when its debates have begun."""
    holding = asyncio.create_task(session.run())
    await until(lambda: session.is_running)
    return holding


@pytest.mark.parametrize("engine", [INLINE, ACTORS])
async def test_a_stop_lets_no_call_start_that_still_waits_for_leave(tmp_path: Path, engine: dict[str, Any]) -> None:
    with simulated_server(KEY, latency_ms=200.0) as port:
        model, out = f"http://127.0.0.1:{port}/v1#m", str(tmp_path / "run")
        options = {"model": model, "out": out, "limit": 4, "concurrency": 1, **engine}
        session = Session(prepare(moot.RunConfig.build(None, options)))
        holding = await _debating(session)
        await until(lambda: _calls_by_step(port))
        before = _calls_by_step(port)
        session.stop()
        stopped = await holding
        after = _calls_by_step(port)
    assert stopped.status == "interrupted"
    assert len(after) <= len(before) + 2, "one was under way, and one may have started while the stop was told"
    events = stopped.table("events").to_pylist()
    refused = [json.loads(row["data"]) for row in events if row["kind"] == "abandoned"]
    assert {(each["why"], each["attempts"]) for each in refused} == {("drain", 0)}
    assert (stopped.summary.tokens_repaid, stopped.summary.attempts_unconfirmed) == (0, 0)


def _calls_by_step(port: int) -> dict[str, int]:
    return {step: served["calls"] for step, served in stats_of(port)["by_step"].items() if step != STEP_KEY}


@pytest.mark.parametrize("engine", [INLINE, ACTORS])
def test_an_unreadable_first_reply_is_not_paid_again_after_a_stop(tmp_path: Path, engine: dict[str, Any]) -> None:
    options: dict[str, Any] = {"limit": 8, "seed": 3, "protocol": "majority-vote", "max_open": 8, **engine}
    with simulated_server(KEY, seed=3, garble_rate=0.5) as port:
        model = f"http://127.0.0.1:{port}/v1#m"
        whole = moot.run(model=model, out=tmp_path / "whole", **options | INLINE)
    with simulated_server(KEY, seed=3, garble_rate=0.5) as port:
        model = f"http://127.0.0.1:{port}/v1#m"
        cap = (whole.summary.tokens_paid or 0) // 2
        stopped = moot.run(model=model, out=tmp_path / "run", max_tokens=cap, **options)
        waiting = {row["path"] for row in stopped.table("turns").to_pylist() if row["outcome"] == "invalid"}
        assert (stopped.exit_code, bool(waiting)) == (4, True)
        done = moot.run(model=model, out=tmp_path / "run", **options | INLINE)
        calls = _calls_by_step(port)
    assert done.left == 0
    assert {step: n for step, n in calls.items() if n != 1} == {}, "each step was paid once"
    assert done.summary.tokens_paid == whole.summary.tokens_paid
    for table in ("verdicts", "turns"):
        one, other = (stable_rows(tmp_path / name, table, ["model", "fingerprint"]) for name in ("whole", "run"))
        assert one == other
