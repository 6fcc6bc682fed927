"""A stage whose run has stopped or broken: it can be used again, and its folder is free for another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from server_client import until

from moot.actors.dispatch.case_router import RunFailed
from moot.actors.record.folder import RunFolder
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.ray_data.row_kinds import DebateRows
from moot.deploy.runs.ray_data.stage_actor import StageActor

Make = Callable[..., StageActor]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes the actor of a stage as an object of this process."""
    monkeypatch.chdir(tmp_path)  # it goes to its driver's folder
    monkeypatch.setattr("moot.deploy.runs.ray_data.stage_actor.configure_json", lambda level: None)
    monkeypatch.setattr("moot.actors.dispatch.case_router.DRAIN_S", 0.1)

    def made(**options: Any) -> StageActor:
        config = {"engine": "inline", "out": str(tmp_path / "run"), **options}
        return StageActor(json.dumps(config), None, DebateRows(), str(tmp_path))

    return made


async def debate(actor: StageActor, batch: int, *questions: str, execution: str = "first") -> list[dict[str, Any]]:
    rows = [{"question": question, "labels": ["Yes", "No"]} for question in questions]
    found = await actor.debate((execution, "task", batch), msgspec.msgpack.encode(rows))
    ends: list[dict[str, Any]] = msgspec.msgpack.decode(found)
    return ends


def open_run(actor: StageActor) -> Any:
    run = actor._run
    assert isinstance(run, OpenRun)
    return run


def sessions(folder: Path) -> list[str]:
    return [each["status"] for each in yaml.safe_load((folder / "run" / "run.yaml").read_text())["sessions"]]


async def test_a_stage_whose_run_broke_continues_with_a_new_one(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> None:
        raise OSError("the disk is full")

    actor = make()
    (first,) = await debate(actor, 0, "is it one")
    monkeypatch.setattr(open_run(actor)._runtime.writers, "register", fails)
    with pytest.raises(RunFailed, match="disk is full"):
        await debate(actor, 1, "is it two", "is it three")
    assert not RunFolder(tmp_path / "run").is_owned()
    ends = await debate(actor, 2, "is it two", "is it three")
    assert [end["failure"] for end in ends] == [None, None]
    (again,) = await debate(actor, 0, "is it one", execution="second")
    assert (again["answer"], again["reused"]) == (first["answer"], True)
    await actor.close(0.0)
    assert sessions(tmp_path) == ["failed", "finished"]


async def test_a_stage_whose_endpoint_was_down_resumes_when_it_is_called_again(make: Make, tmp_path: Path) -> None:
    actor = make(model="simulated?latency_ms=60000")
    going = [asyncio.create_task(debate(actor, number, f"is it {number}")) for number in range(2)]
    await until(lambda: actor._run is not None and open_run(actor).pending == 2)
    open_run(actor)._dispatcher._stop("endpoint_down: http://nowhere")
    for (end,) in await asyncio.gather(*going):
        assert end["failure"] == "not_held"
        assert "http://nowhere has not answered" in end["error"]
    assert not RunFolder(tmp_path / "run").is_owned()
    more = asyncio.create_task(debate(actor, 2, "is it 2"))
    await until(actor.pending)
    await actor.close(0.0)
    assert [end["failure"] for end in await more] == ["not_held"]
    assert sessions(tmp_path)[0] == "stopped"


async def test_a_batch_that_is_cancelled_while_its_stopped_run_is_closed_frees_the_folder(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing, goes_on, close = asyncio.Event(), asyncio.Event(), OpenRun.close

    async def slowly(run: OpenRun, **options: Any) -> None:
        closing.set()
        await goes_on.wait()
        await close(run, **options)

    monkeypatch.setattr(OpenRun, "close", slowly)
    batch = asyncio.create_task(debate(make(max_tokens=50), 0, "is it 0"))
    await closing.wait()
    batch.cancel()
    await asyncio.gather(batch, return_exceptions=True)
    assert batch.cancelled()
    goes_on.set()
    await until(lambda: not RunFolder(tmp_path / "run").is_owned())
    assert sessions(tmp_path) == ["stopped"]


async def test_a_used_up_budget_frees_the_folder_and_is_not_tried_by_every_batch(make: Make, tmp_path: Path) -> None:
    actor = make(max_tokens=50)
    for number in range(3):
        (end,) = await debate(actor, number, f"is it {number}")
        assert end["failure"] == "not_held"
        assert "--max-tokens 50" in end["error"]
        assert end["case_id"]
    assert sessions(tmp_path) == ["stopped"]
    (end,) = await debate(actor, 0, "is it 0", execution="second")
    assert end["failure"] == "not_held"
    assert sessions(tmp_path) == ["stopped", "stopped"]
    richer = make(max_tokens=100_000)
    (end,) = await debate(richer, 0, "is it 0")
    assert end["failure"] is None
    await richer.close(0.0)
    await actor.close(0.0)
    assert sessions(tmp_path) == ["stopped", "stopped", "finished"]
