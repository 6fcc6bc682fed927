"""The Ray engine as its driver sees it, where no Ray is needed."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from many_settings import ManySettings
from small_runs import make_spec, same_model_roles
from virtual_time import virtual_time

from moot.actors.remote import run_actor, runtime, watchdog
from moot.actors.remote.peers import Incarnation, Peer
from moot.actors.remote.run_actor import ActorDirectory, ModeratorActor
from moot.actors.remote.runtime import RayModeratorHandle, RayRuntime
from moot.actors.remote.watchdog import run_watchdog
from moot.actors.remote.writer_pool import RayWriterPool
from moot.actors.telemetry.meter import SILENT


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "_ASK_EACH_S", 0.01)
    monkeypatch.setattr(watchdog, "UNRESPONSIVE_S", 0.05)


class Hung(Peer):
    """An actor that neither dies nor answers, until it is let to."""

    def __init__(self) -> None:
        super().__init__("hung", "here")
        self.going_on = asyncio.Event()
        self.ended = 0

    async def call(self, method: str, *args: Any) -> Any:
        await self.going_on.wait()
        return msgspec.msgpack.encode(Incarnation("node", "worker", 7))

    async def kill(self) -> None:
        self.ended += 1
        self.going_on.set()


async def test_a_start_that_is_cancelled_twice_is_waited_for(tmp_path: Path) -> None:
    """Anything it creates after shutdown would outlive the run."""
    started = RayRuntime(make_spec(tmp_path, same_model_roles("simulated")), ManySettings())
    began, go_on, joined = threading.Event(), threading.Event(), threading.Event()

    def join() -> None:
        began.set()
        go_on.wait(10)
        joined.set()

    started._ray_session.connect = join  # type: ignore[method-assign]
    starting = asyncio.create_task(started.start())
    await asyncio.to_thread(began.wait, 10)
    for _ in range(2):
        starting.cancel()
        await asyncio.wait([starting], timeout=0.05)
    assert not starting.done()
    go_on.set()
    await asyncio.wait([starting], timeout=10)
    assert starting.cancelled()
    assert joined.is_set()


@virtual_time
async def test_a_moderator_that_hangs_does_not_keep_a_run_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_DRAINED_LATE_S", 0.05)
    with structlog.testing.capture_logs() as logs:
        async with asyncio.timeout(5):
            await RayModeratorHandle(Hung(), RayWriterPool([])).drain(0.05)
    assert [line["actor"] for line in logs] == ["hung"]


async def test_a_writer_that_takes_no_rows_does_not_keep_a_moderator_from_draining(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_actor, "_ROWS_WITHIN_S", 0.05)
    directory = ActorDirectory(namespace="", writers=[], moderators=["moderator"], agents=[])
    spec = make_spec(tmp_path, same_model_roles("simulated")).model_dump_json()
    moderator = ModeratorActor(spec, directory, "moderator", "packed", ManySettings())
    moderator._new_meter = lambda: SILENT  # type: ignore[method-assign]
    await moderator.ping()
    waiting = asyncio.Event()

    async def never_drained() -> None:
        waiting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(moderator._record_client, "drained", never_drained)
    async with asyncio.timeout(5):
        await moderator.drain(0.05)
    assert waiting.is_set(), "its rows were waited for, and given up"


@virtual_time
async def test_an_unresponsive_actor_is_reported_once() -> None:
    hung = Hung()
    hung.going_on.set()
    with structlog.testing.capture_logs() as logs:
        telling = asyncio.create_task(run_watchdog([hung]))
        await asyncio.sleep(0.2)
        assert not logs
        hung.going_on.clear()
        await asyncio.sleep(0.3)
        hung.going_on.set()
        await asyncio.sleep(0.1)
        telling.cancel()
    assert [(line["actor"], line.get("pid")) for line in logs] == [("hung", 7), ("hung", None)]
    assert "its process is killed" in logs[0]["event"]
    assert not hung.ended


@virtual_time
async def test_who_hangs_for_long_is_ended_and_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "HUNG_S", 0.1)
    hung = Hung()
    with structlog.testing.capture_logs() as logs:
        ending = asyncio.create_task(run_watchdog([hung]))
        async with asyncio.timeout(10):
            await hung.going_on.wait()
        await asyncio.sleep(0.1)
        ending.cancel()
    assert hung.ended == 1
    assert [line["event"].split(":")[0] for line in logs[1:3]] == [
        "the process of an actor is ended",
        "an actor answers again, or is being restarted",
    ]


async def test_time_in_which_this_process_is_suspended_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell does at Ctrl-Z and `fg`: the clock has advanced for all processes, and none could answer."""
    monkeypatch.setattr(watchdog, "_TICK_S", 0.01)
    monkeypatch.setattr(watchdog, "UNRESPONSIVE_S", 0.1)
    monkeypatch.setattr(watchdog, "HUNG_S", 0.2)
    hung = Hung()
    with structlog.testing.capture_logs() as logs:
        ending = asyncio.create_task(run_watchdog([hung]))
        await asyncio.sleep(0.02)
        time.sleep(0.4)  # noqa: ASYNC251  stands still
        await asyncio.sleep(0.05)
        hung.going_on.set()
        await asyncio.sleep(0.05)
        ending.cancel()
    assert (logs, hung.ended) == ([], 0)
