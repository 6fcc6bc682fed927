"""Runs that stay open: cases come one by one, on every engine, and what is on record costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from openai_server import simulated_server
from server_client import until

import moot
from moot.actors.debate.inline_engine import InlineRuntime
from moot.actors.dispatch.case_router import DebateCancelled
from moot.actors.record.schema import CANCELLED
from moot.actors.record.tables import read_table
from moot.actors.simulated.answer_key import AnswerKey
from moot.deploy.runs import session_lifecycle
from moot.deploy.runs.checks import check_models
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.run_library import default_library_folder
from moot.protocols.errors import ConfigError, RecordError, RunFolderBusy, RunMismatch, TaskFileError
from moot.protocols.tasks import open_task

ENGINES: dict[str, dict[str, Any]] = {
    "inline": {"engine": "inline"},
    "packed": {"engine": "ray", "placement": "packed", "cluster": {"moderators": 1}},
    "actors": {"engine": "ray", "placement": "actors"},
}
ON_RAY = [pytest.mark.slow, pytest.mark.ray]
CASES = [
    {"id": f"q{i}", "question": f"is number {i} blue", "labels": ["Yes", "No"], "passage": f"Number {i} is blue."}
    for i in range(12)
]
SLOW = "simulated?latency_ms=60000"


@asynccontextmanager
async def opened(folder: Path, drain_s: float = 0.0, **options: Any) -> AsyncIterator[OpenRun]:
    run = OpenRun(RunConfig(**{"out": str(folder), "engine": "inline", "seed": 3, **options}))
    await run.open()
    try:
        yield run
    finally:
        await run.close(drain_s=drain_s)


def rows(folder: Path, table: str, *columns: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(folder, table, columns or None).to_pylist()
    return found


async def three_replies(run: OpenRun) -> None:
    async with asyncio.timeout(30):
        while (await run.counts()).paid.calls < 3:  # noqa: ASYNC110 - a condition of a test
            await asyncio.sleep(0.01)


async def test_a_record_that_lost_a_part_is_refused_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = await moot.arun(task=CASES[:2], engine="inline", out=tmp_path / "whole")
    async with opened(tmp_path / "open") as run:
        await run.run_case(CASES[0])
    for folder in (tmp_path / "open", whole.path):
        (listed,) = (folder / "parts").glob("*.json")
        listed.unlink()

    async def paid(*_: object) -> None:
        raise AssertionError("a trial call is paid for")

    monkeypatch.setattr(session_lifecycle, "check_models", paid)
    with pytest.raises(RecordError, match=listed.name):
        await OpenRun(RunConfig(out=str(tmp_path / "open"), engine="inline", seed=3)).open()
    with pytest.raises(RecordError, match=listed.name):
        await moot.arun(task=CASES[:2], engine="inline", out=tmp_path / "whole")


@pytest.mark.parametrize("name", ["inline", pytest.param("packed", marks=ON_RAY)])
async def test_verdicts_are_those_of_a_run_over_the_same_cases(name: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "open", **ENGINES[name]) as run:
        ends = await asyncio.gather(*(run.run_case(case) for case in CASES))
        again = await run.run_case(CASES[3])
    whole = await moot.arun(task=CASES, seed=3, engine="inline", out=tmp_path / "whole")
    expected = {row["case_id"]: row for row in rows(whole.path, "verdicts")}
    assert [end.case_id for end in ends] == [case["id"] for case in CASES]
    same = ("answer", "how", "confidence", "rounds", "calls", "prompt_tokens", "completion_tokens")
    for end in ends:
        assert [getattr(end, name) for name in same] == [expected[end.case_id][name] for name in same]
        assert (end.cost_usd, end.reused) == (0.0, False)
    assert again.reused
    assert again.payload == ends[3].payload
    assert again.cost_usd == 0.0
    assert len(rows(tmp_path / "open", "verdicts")) == len(CASES)


async def test_a_later_run_returns_recorded_results_and_pays_for_the_rest_only(tmp_path: Path) -> None:
    task = open_task("sample")
    with simulated_server(AnswerKey.from_cases(task.cases()), port=0) as port:
        options: dict[str, Any] = {"model": f"http://127.0.0.1:{port}/v1#sim", "prices": _prices(tmp_path, port)}
        async with opened(tmp_path / "run", **options) as run:
            first = [await run.run_case(case) for case in CASES[:4]]
        async with opened(tmp_path / "run", **options) as run:
            second = await asyncio.gather(*(run.run_case(case) for case in CASES[:6]))
            paid = (await run.counts()).paid.tokens
    assert [end.reused for end in second] == [True] * 4 + [False] * 2
    for before, after in zip(first, second[:4], strict=True):
        assert before.cost_usd is not None
        assert before.cost_usd > 0
        assert after.cost_usd == pytest.approx(before.cost_usd)
        assert (after.answer, after.distribution, after.flags) == (before.answer, before.distribution, before.flags)
    assert paid == sum(end.prompt_tokens + end.completion_tokens for end in second)


def _prices(folder: Path, port: int) -> str:
    file = folder / "prices.yaml"
    file.write_text(f'models:\n  "http://127.0.0.1:{port}/v1#sim": {{input: 1.0, output: 2.0}}\n')
    return str(file)


@pytest.mark.parametrize("name", ["inline", pytest.param("actors", marks=ON_RAY)])
async def test_a_cancelled_case_has_no_verdict_and_its_calls_are_cancelled(name: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "run", model=SLOW, **ENGINES[name]) as run:
        holding = asyncio.create_task(run.run_case(CASES[0]))
        await until(lambda: run.pending)
        events = run.events("q0")
        assert events is not None
        assert (await anext(events)).kind == "asked"
        assert await run.cancel("q0")
        with pytest.raises(DebateCancelled, match="withdrawn"):
            await holding
        assert [event.kind async for event in events if event.kind == "verdict"] == []
        assert not await run.cancel("q0")
        assert run.pending == 0
    assert rows(tmp_path / "run", "verdicts") == []
    ends = [row["data"] for row in rows(tmp_path / "run", "events", "data") if row["kind"] == CANCELLED]
    assert ends == ['{"why":"withdrawn"}']


async def test_a_withdrawn_case_resumes_from_the_record_when_it_is_submitted_again(tmp_path: Path) -> None:
    with simulated_server(AnswerKey(), port=0, latency_ms=150.0) as port:
        async with opened(tmp_path / "run", model=f"http://127.0.0.1:{port}/v1#sim") as run:
            holding = asyncio.create_task(run.run_case(CASES[0]))
            await three_replies(run)
            await run.cancel("q0")
            with pytest.raises(DebateCancelled):
                await holding
            end, replies = await run.run_case(CASES[0]), (await run.counts()).paid.calls
    assert (end.answer in ("Yes", "No"), replies) == (True, end.calls)
    turns = rows(tmp_path / "run", "turns", "path")
    assert len({row["path"] for row in turns}) == len(turns)


async def test_who_follows_a_debate_that_was_taken_up_again_gets_what_happened_before_too(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with simulated_server(AnswerKey(), port=0, latency_ms=150.0) as port:
        async with opened(out, model=f"http://127.0.0.1:{port}/v1#sim") as run:
            holding = asyncio.create_task(run.run_case(CASES[0]))
            await three_replies(run)
        assert isinstance((await asyncio.gather(holding, return_exceptions=True))[0], DebateCancelled)
        before = rows(out, "turns")
        async with opened(out, model=f"http://127.0.0.1:{port}/v1#sim") as run:
            holding = asyncio.create_task(run.run_case(CASES[0]))
            await until(lambda: run.events("q0") is not None)
            events = run.events("q0")
            assert events is not None
            told = [event async for event in events]
            await holding
            late = run.events("q0")
            assert late is not None
            assert [event async for event in late] == told
    replies = [event for event in told if event.kind == "reply"]
    recorded = {row["path"]: row["text"] for row in rows(out, "turns", "text")}
    assert {event.path: event.data["text"] for event in replies} == recorded
    assert len(replies) == len(recorded) > len(before) >= 3
    noted = [(event.kind, event.path) for event in told if event.kind not in ("asked", "reply", "verdict")]
    assert sorted(noted) == sorted((row["kind"], row["path"]) for row in rows(out, "events") if row["kind"] != "asked")
    assert told[0].kind == "asked"
    assert told[-1].kind == "verdict"


async def refuse_to_start(runtime: InlineRuntime) -> None:
    raise RecordError("no room")


async def test_an_engine_that_cannot_start_ends_its_session_and_leaves_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "run") as run:
        await run.run_case(CASES[0])
    monkeypatch.setattr(InlineRuntime, "start", refuse_to_start)
    with pytest.raises(RecordError, match="no room"):
        await OpenRun(RunConfig(out=str(tmp_path / "run"), engine="inline", seed=3)).open()
    assert [session["status"] for session in sessions(tmp_path / "run")] == ["finished", "failed"]
    assert len(rows(tmp_path / "run", "verdicts")) == 1


@pytest.mark.parametrize("documents", [False, True])
async def test_a_first_start_that_fails_leaves_no_folder_but_keeps_a_library(
    documents: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "facts.txt").write_text("Cats make about 100 different sounds.")
    docs: dict[str, Any] = {"docs": (str(tmp_path / "facts.txt"),), "protocol": "ceda"} if documents else {}
    config = RunConfig(out=str(tmp_path / "run"), engine="inline", **docs)

    with monkeypatch.context() as patched:
        patched.setattr(InlineRuntime, "start", refuse_to_start)
        with pytest.raises(RecordError, match="no room"):
            await OpenRun(config).open()
    assert (tmp_path / "run").exists() is documents
    if documents:
        library = default_library_folder(tmp_path / "run")
        before = {file: file.stat().st_mtime_ns for file in library.rglob("*") if file.is_file()}
        assert before
        assert [session["status"] for session in sessions(tmp_path / "run")] == ["failed"]
        run = OpenRun(config)
        await run.open()
        await run.close()
        assert {file: file.stat().st_mtime_ns for file in before} == before


async def test_a_folder_that_is_in_use_costs_no_trial_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def counted(prepared: Any) -> Any:
        asked.append(prepared)
        return await check_models(prepared)

    monkeypatch.setattr("moot.deploy.runs.session_lifecycle.check_models", counted)
    async with opened(tmp_path / "run"):
        assert len(asked) == 1
        waiting = OpenRun(RunConfig(out=str(tmp_path / "run"), engine="inline", seed=3))
        for _ in range(3):
            with pytest.raises(RunFolderBusy, match="another process"):
                await waiting.open()
    assert len(asked) == 1
    await waiting.open()
    await waiting.close()
    assert len(asked) == 2


def sessions(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((folder / "run.yaml").read_text())["sessions"]
    return found


async def test_wrong_cases_and_configurations_are_refused(tmp_path: Path) -> None:
    for config, said in (
        ({"task": "sample"}, "one by one"),
        ({"max_minutes": 1.0}, "max_minutes"),
        ({"attended": True}, "attended"),
    ):
        with pytest.raises(ConfigError, match=said):
            OpenRun(RunConfig.build(None, config))
    async with opened(tmp_path / "run") as run:
        with pytest.raises(TaskFileError, match="question"):
            await run.run_case({"passage": "no question"})
    with pytest.raises(ConfigError, match="not open"):
        await run.run_case(CASES[0])
    async with opened(tmp_path / "closed list", protocol="evince") as run:
        with pytest.raises(ConfigError, match="labels"):
            await run.run_case({"question": "why"})
    with pytest.raises(RunMismatch, match="seed"):
        await OpenRun(RunConfig(out=str(tmp_path / "run"), engine="inline", seed=4)).open()


async def test_the_record_is_read_once_when_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def noted(folder: Any, table: str, *args: Any, **options: Any) -> Any:
        reads.append(table)
        return read_table(folder, table, *args, **options)

    monkeypatch.setattr("moot.deploy.runs.record_state.read_table", noted)
    for resumed in (False, True):
        reads.clear()
        async with opened(tmp_path / "run") as run:
            await run.run_case(CASES[0])
        assert sorted(reads) == ["cases", *["turns"] * resumed, "verdicts"]


async def test_an_opening_that_is_cancelled_leaves_the_folder_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = asyncio.Event()

    async def hang(self: InlineRuntime) -> None:
        starting.set()
        await asyncio.Event().wait()

    start = InlineRuntime.start
    monkeypatch.setattr(InlineRuntime, "start", hang)
    run = OpenRun(RunConfig(out=str(tmp_path / "run"), engine="inline", seed=3))
    opening = asyncio.create_task(run.open())
    await starting.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert (run.is_open, (tmp_path / "run").exists()) == (False, False)
    monkeypatch.setattr(InlineRuntime, "start", start)
    await run.open()
    await run.close()
    assert [session["status"] for session in sessions(tmp_path / "run")] == ["finished"]
