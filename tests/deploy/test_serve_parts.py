"""Parts of `moot serve`'s process: what it says, how it is told to stop, and where it listens."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from served import CASE, INLINE

from moot.deploy.serving.api import make_api
from moot.deploy.serving.listener import Listener
from moot.deploy.serving.notices import Notices
from moot.deploy.serving.services import Services
from moot.deploy.serving.settings import ServeConfig
from moot.deploy.serving.stopping import Stopping
from moot.protocols.errors import ActorGone, ConfigError


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_breaks_off_what_the_first_one_began(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    with Stopping() as stopping:
        assert not stopping.wait(0.0)
        os.kill(os.getpid(), number)
        assert stopping.wait(5.0)
        assert "Ctrl-C again" in capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_once_it_serves_the_server_says_itself_what_a_signal_begins(capfd: pytest.CaptureFixture[str]) -> None:
    def rays(number: int, frame: object) -> None:
        """Ray takes SIGTERM when it starts."""

    with Stopping() as stopping:
        signal.signal(signal.SIGTERM, rays)
        stopping.started()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.wait(5.0)
        assert capfd.readouterr().err == ""


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
        await listener.close(5.0)
        await listener.close(5.0)
        listener.check()
    await services.close()


async def test_a_taken_port_is_waited_for_and_then_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.serving.listener._FREE_WITHIN_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            await Listener(nothing, "127.0.0.1", port).open()
    with pytest.raises(ConfigError, match=r"cannot listen on 203\.0\.113\.1:1"):
        await Listener(nothing, "203.0.113.1", 1).open()


async def test_a_listener_that_ends_by_itself_is_noticed() -> None:
    listener = Listener(nothing, "127.0.0.1", free_port())
    await listener.open()
    assert listener._serving is not None
    listener._serving.cancel()
    await asyncio.wait([listener._serving])
    with pytest.raises(ActorGone, match="nothing listens"):
        listener.check()
    await listener.close(1.0)
