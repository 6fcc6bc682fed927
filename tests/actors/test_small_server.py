"""The server of `small`: one for all processes of a user, gone with the last of them; tried with a stand-in engine."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import time
from pathlib import Path

import aiohttp
import psutil
import pytest
from small_server import User, stand_in

from moot.actors.models.interface import ModelError
from moot.actors.models.small import sharing
from moot.actors.models.small.model import SmallModel
from moot.actors.models.small.server import ADDRESS, LINGER_S, SERVER_LOCK
from moot.protocols.errors import ModelUnavailable
from moot.protocols.messages import Decoding, Message


async def ask(model: SmallModel, step: str = "s") -> tuple[int, int]:
    """The server's process and the seed that it got."""
    reply = await model.complete([Message("user", "?")], Decoding(), step_key=step)
    process, seed = reply.text.split()
    return int(process), int(seed)


def folder_of(model: SmallModel) -> Path:
    return model._folder()


def until_ended(folder: Path) -> None:
    """Wait until no server holds its lock: its process may stay for a while as a zombie of whoever adopted it."""
    os.close(sharing._locked(folder / SERVER_LOCK, fcntl.LOCK_EX, time.monotonic() + 30.0))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallModel:
    stand_in(tmp_path, monkeypatch)
    return SmallModel("small", seed=1)


async def test_models_share_one_server_that_only_the_user_can_use(model: SmallModel) -> None:
    other = SmallModel("small", seed=2)
    await model.check()
    (server, seed), (same, another) = await ask(model), await ask(other)
    assert server == same != os.getpid()
    assert await ask(model) == (server, seed)
    assert seed != another
    folder = folder_of(model)
    for path in (folder.parent, folder, *folder.iterdir()):
        assert not path.stat().st_mode & 0o077, path
    address = json.loads((folder / ADDRESS).read_text())
    assert address["url"].startswith("http://127.0.0.1:")
    assert not any(address["key"] in word for word in psutil.Process(server).cmdline())
    async with aiohttp.ClientSession() as session, session.post(f"{address['url']}/chat/completions", json={}) as said:
        assert said.status == 401
    await model.close()
    assert await ask(other) == (server, another), "it serves whoever is left"
    await other.close()


async def test_a_server_that_died_is_started_again(model: SmallModel) -> None:
    server, seed = await ask(model)
    os.kill(server, signal.SIGKILL)
    until_ended(folder_of(model))
    with pytest.raises(ModelError) as caught:
        await ask(model)
    assert caught.value.kind == "connection"
    another, same = await ask(model)
    assert another != server
    assert same == seed
    await model.close()


async def test_one_that_always_dies_is_not_started_for_ever(model: SmallModel) -> None:
    folder = folder_of(model)
    (folder / ADDRESS).write_text("{}")
    (folder / "deaths.json").write_text(json.dumps([time.monotonic()] * sharing.MOST_DEATHS))
    with pytest.raises(ModelError, match="has died 5 times"):
        await ask(model)
    with pytest.raises(ModelUnavailable, match="has died 5 times"):
        await model.check()


async def test_an_engine_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, weights="damaged")
    with pytest.raises(ModelUnavailable, match="the weights are damaged"):
        await SmallModel("small", seed=1).check()


async def test_the_loop_goes_on_while_another_process_is_starting_it(model: SmallModel) -> None:
    starting = os.open(folder_of(model) / "start.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(starting, fcntl.LOCK_EX)
    asked = asyncio.create_task(ask(model))
    done, _ = await asyncio.wait([asked], timeout=0.1)
    assert not done, "it waits, and this task does not"
    os.close(starting)
    await asked
    await model.close()


async def test_a_folder_of_somebody_else_is_refused(model: SmallModel, tmp_path: Path) -> None:
    folder = folder_of(model).parent
    folder.chmod(0o755)
    with pytest.raises(ModelUnavailable, match="nobody else can read"):
        await model.check()
    folder.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelUnavailable, match="folder of yours"):
        await model.check()


@pytest.mark.slow
def test_it_ends_when_its_last_user_has_ended_or_was_killed(model: SmallModel) -> None:
    users = [User() for _ in range(3)]
    assert len({user.server for user in users}) == 1
    users[0].kill()
    users[1].end()
    time.sleep(LINGER_S + 0.5)
    assert (folder_of(model) / ADDRESS).exists(), "one user is left"
    users[2].kill()
    until_ended(folder_of(model))
    assert not (folder_of(model) / ADDRESS).exists()
