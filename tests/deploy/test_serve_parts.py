"""Parts of `moot serve`'s process: what it says, how it is told to stop, and where it listens."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from served import CASE, INLINE, parsed

from moot.deploy.serving.api import make_api
from moot.deploy.serving.door import EndingRate
from moot.deploy.serving.listener import ANSWER_S, Listener
from moot.deploy.serving.process import SILENT, Notices, _run
from moot.deploy.serving.services import Services
from moot.deploy.serving.settings import ServeConfig
from moot.deploy.serving.stopping import Stopping
from moot.protocols.errors import ActorGone, ConfigError


@pytest.fixture(autouse=True)
def _calls_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.seating.DRAIN_S", 0.1)


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def test_a_server_that_was_started_anew_is_told_of_however_fast_that_was() -> None:
    notices = Notices()
    assert list(notices.of({}, "first")) == []
    assert list(notices.of({}, "second")) == [
        "requests are not taken: the server does not answer; Ray Serve starts it anew",
        "requests are taken again",
    ]
    assert len(list(notices.of(SILENT))) == 1
    assert list(notices.of({}, "third")) == ["requests are taken again"]


def test_what_changes_is_said_once() -> None:
    notices = Notices()
    down = {"debates": "down"}
    assert [list(notices.of(each)) for each in ({}, down, down, {"debates": "spent"}, {"checks": "down"}, {})] == [
        [],
        ["debates are not taken: down"],
        [],
        ["debates are not taken: spent"],
        ["checks are not taken: down", "debates are taken again"],
        ["checks are taken again"],
    ]


def test_why_a_replica_did_not_start_is_told_where_serve_says_only_that_it_did_not() -> None:
    """As Ray Serve 2.60 tells it: the application's error is bare, the deployment's message has the replica's."""

    class Serve:
        def run(self, *_: Any, **__: Any) -> None:
            raise RuntimeError("Deploying application moot failed: Failed to update the deployments ['moot'].")

        def status(self) -> Any:
            told = "Traceback ...\nmoot.protocols.errors.MissingKey: the environment variable NOPE is not set\n"
            deployment = SimpleNamespace(message=told)
            return SimpleNamespace(applications={"moot": SimpleNamespace(deployments={"moot": deployment})})

    with pytest.raises(ConfigError, match=r"variable NOPE is not set$"):
        _run(Serve(), None, "moot")
    with pytest.raises(ConfigError, match="Failed to update"):
        _run(Serve(), None, "another")


def test_a_quiet_time_is_no_part_of_the_pace_at_which_debates_end() -> None:
    now = 0.0
    rate = EndingRate(lambda: now)
    for count, each_s in ((256, 1.0), (0, 0.0), (100, 1.0), (1000, 0.01)):
        for _ in range(count):
            now += each_s
            rate.ended()
        if not count:
            now += 36_000.0
            assert rate.seconds_until(1) == 5.0  # nothing is known of now
        elif each_s == 1.0:
            assert rate.seconds_until(10) == pytest.approx(10.0, rel=0.1)
    assert rate.seconds_until(1) < 0.02 + 1e-3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_breaks_off_what_the_first_one_began(
    number: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(number)
    with Stopping() as stopping:
        assert not stopping.wait(0.0)
        os.kill(os.getpid(), number)
        assert stopping.wait(5.0)
        assert "Ctrl-C again" in capfd.readouterr().err
        os.kill(os.getpid(), number)  # the same one, passed on by a wrapper
        monkeypatch.setattr("moot.deploy.serving.stopping._TOGETHER_S", 0.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_once_it_serves_the_server_says_itself_what_a_signal_begins(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rays(number: int, frame: object) -> None:
        """Ray takes SIGTERM when it starts."""

    with Stopping() as stopping:
        signal.signal(signal.SIGTERM, rays)
        stopping.take_back()
        stopping.started()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.wait(5.0)
        assert capfd.readouterr().err == ""
        monkeypatch.setattr("moot.deploy.serving.stopping._TOGETHER_S", 0.0)
        stopping.drained()
        os.kill(os.getpid(), signal.SIGTERM)  # what is left to do goes on


async def test_a_listener_answers_and_lets_its_port_go(tmp_path: Path) -> None:
    services = Services(ServeConfig.build({"out": str(tmp_path), "debates": INLINE}))
    await services.open()
    port = free_port()
    for _ in range(2):
        listener = Listener(make_api(services, None), "127.0.0.1", port)
        await listener.open()
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"http://127.0.0.1:{port}/v1/debates?wait_s=60", json={**CASE, "id": "one"}) as answer,
        ):
            assert (await answer.json())["status"] == "done"
        listener.check()
        await listener.close()
        await listener.close()
        listener.check()
    await services.close()


@asynccontextmanager
async def listening(tmp_path: Path, **debates: Any) -> AsyncIterator[tuple[Services, Listener, int]]:
    services = Services(ServeConfig.build({"out": str(tmp_path), "debates": {**INLINE, **debates}}))
    await services.open()
    port = free_port()
    listener = Listener(make_api(services, None), "127.0.0.1", port)
    await listener.open()
    try:
        yield services, listener, port
    finally:
        await services.close()
        await listener.close()


async def test_headers_have_a_bound(tmp_path: Path) -> None:
    async with listening(tmp_path) as (_, _, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X-Long: " + b"x" * 200_000)
        async with asyncio.timeout(30):
            assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        writer.close()


async def test_a_client_that_hangs_up_gives_its_place_back(tmp_path: Path) -> None:
    async with listening(tmp_path, model="simulated?latency_ms=60000") as (services, _, port):
        body = json.dumps({**CASE, "id": "one"}).encode()
        head = f"POST /v1/debates?wait_s=60 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        for request in (head.encode() + b"Content-Type: application/json\r\n\r\n" + body,
                        b"GET /v1/debates/one?wait_s=60 HTTP/1.1\r\nHost: localhost\r\n\r\n"):  # fmt: skip
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            await until(lambda: services._held == 1)
            writer.close()
            await until(lambda: services._held == 0)
        counts = services.stats().debates
        assert counts is not None
        assert (counts.open + counts.queued, counts.cancelled) == (1, 0)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - a condition of a test
            await asyncio.sleep(0.01)


async def test_who_follows_the_last_debate_of_a_drain_is_told_its_end(tmp_path: Path) -> None:
    async with (
        listening(tmp_path, model="simulated?latency_ms=150") as (services, listener, port),
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        await (await session.post("/v1/debates", json={**CASE, "id": "one"})).read()
        async with session.get("/v1/debates/one/events") as stream:
            await stream.content.readline()
            await services.drain(30.0)
            assert await services.close() == 0
            started = time.monotonic()
            await listener.close()
            assert time.monotonic() - started < ANSWER_S
            told = parsed((await stream.read()).decode())
    assert [event["event"] for event in told][-2:] == ["verdict", "end"]


async def test_what_does_not_end_by_itself_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.serving.listener.ANSWER_S", 1)
    sent: list[int] = []

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            sent.append(1)
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0.01)

    port = free_port()
    listener = Listener(endless, "127.0.0.1", port)
    await listener.open()
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/") as stream:
        await stream.content.read(1)
        await listener.close()
        before = len(sent)
        await asyncio.sleep(0.1)
        assert len(sent) == before


async def test_a_taken_port_is_waited_for_and_then_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.serving.listener._FREE_WITHIN_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}: Address already in use"):
            await Listener(nothing, "127.0.0.1", port).open()
    with pytest.raises(ConfigError, match=r"203\.0\.113\.1:1"):
        await Listener(nothing, "203.0.113.1", 1).open()


async def test_a_listener_that_ends_by_itself_is_noticed() -> None:
    listener = Listener(nothing, "127.0.0.1", free_port())
    await listener.open()
    assert listener._serving is not None
    listener._serving.cancel()
    await asyncio.wait([listener._serving])
    with pytest.raises(ActorGone, match="nothing listens"):
        listener.check()
    await listener.close()


LEAVING = """
import ctypes, os, signal, threading
from moot.deploy.serving.stopping import Stopping

def leave():
    ctypes.CDLL(None).signal(signal.SIGTERM, ctypes.c_void_p(0))  # to the system, as Ray does beneath Python
    while taken.acquire(blocking=False):
        pass
    for _ in range(2):  # the first may have begun before
        taken.acquire()
    os.kill(os.getpid(), signal.SIGTERM)
    stopping.wait(30.0)

taken, take = threading.Semaphore(0), Stopping._take

def counted(self):
    found = take(self)
    taken.release()
    return found

Stopping._take = counted
with Stopping() as stopping:
    stopping.meanwhile(leave)
    print("asked" if stopping.wait(0.0) else "not asked")
"""


def test_a_signal_while_ray_leaves_is_no_sudden_end() -> None:
    done = subprocess.run([sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "asked\n"), done.stderr
