"""Where the actors of a run live: what is configured, what is asked for, and what waits for a place says so."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog

import moot
from moot.actors.debate.placement import (
    JOINED_CPUS,
    ClusterInfo,
    ClusterSettings,
    cluster_address,
    merge_cluster_settings,
)
from moot.actors.models.api_key import ApiKey
from moot.actors.record.process_folder import LOCK, FolderLock
from moot.actors.remote import ray_session
from moot.actors.remote import scheduling as placing_module
from moot.actors.remote.ray_session import RaySession
from moot.actors.remote.scheduling import ActorScheduler, ResourceRequest, unplaced_reason
from moot.deploy.cli.generated_flags import fields_of
from moot.deploy.runs.flag_parsers import flag_of
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import ConfigError, MissingKey

LAPTOP, CLUSTER = ClusterInfo(cores=8, nodes=1), ClusterInfo(cores=32, nodes=4, joined=True)


@pytest.mark.parametrize(
    ("given", "site", "packed", "expected"),
    [
        ({}, LAPTOP, False, (1, 1)),
        ({}, LAPTOP, True, (8, 1)),
        ({}, CLUSTER, False, (8, 8)),
        ({}, CLUSTER, True, (32, 8)),
        ({}, ClusterInfo(cores=0, nodes=1, joined=True), True, (1, 1)),
        ({"moderators": 3, "agent_processes": 5}, LAPTOP, False, (3, 5)),
        ({"moderators": 300, "agent_processes": 300}, CLUSTER, False, (100, 100)),
    ],
)
def test_counts_follow_the_cores(
    given: dict[str, Any], site: ClusterInfo, packed: bool, expected: tuple[int, int]
) -> None:
    assert ClusterSettings(**given).counts(site, packed=packed, max_open=100) == expected


def test_a_cluster_is_asked_for_a_little_and_a_laptop_for_nothing() -> None:
    chosen = ClusterSettings(num_cpus={"writer": 1.0})
    assert [chosen.cpus(kind, LAPTOP) for kind in ("moderator", "writer")] == [0.0, 1.0]
    assert [chosen.cpus(kind, CLUSTER) for kind in ("moderator", "writer")] == [JOINED_CPUS, 1.0]
    assert [ClusterSettings().spreads(LAPTOP), ClusterSettings().spreads(CLUSTER)] == [False, True]
    assert [ClusterSettings(strategy=each).spreads(CLUSTER) for each in ("default", "spread")] == [False, True]


def test_flags_win_over_a_file_name_by_name() -> None:
    flags = fields_of(
        {"role": None, "set_": None, "cluster": ["num_cpus.agent=0.5", "resources.node:10.0.0.1=0.1", "writers=2"]}
    )
    config = RunConfig.build({"cluster": {"num_cpus": {"writer": 1}, "writers": 4, "moderators": 2}}, flags, flag_of)
    assert config.cluster == ClusterSettings(
        num_cpus={"writer": 1.0, "agent": 0.5}, resources={"node:10.0.0.1": 0.1}, writers=2, moderators=2
    )
    assert RunConfig.build(config, {"cluster": {"moderators": 5}}).cluster.writers == 2
    assert merge_cluster_settings({"num_cpus.agent": 1}, {"num_cpus": {"agent": 2}}) == {"num_cpus": {"agent": 2}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"moderator": 2}, "'moderators'"),
        ({"num_cpus.agents": 1}, "--cluster num_cpus.agents"),
        ({"resources.gold": 0}, "--cluster resources.gold"),
        ({"writers": 0}, "--cluster writers"),
        ({"num_cpus.agent": 1, "num_cpus": {"agent": 2}}, "given twice"),
    ],
)
def test_what_is_wrong_is_named(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        RunConfig.build(None, {"cluster": given}, flag_of)
    assert said in str(error.value)


def test_a_missing_head_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray on its own waits for minutes, and Ctrl-C waits for Ray."""
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", lambda **_: pytest.fail("Ray was asked"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and listens not, so that nobody else can either
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"{address}.*refused"):
            RaySession(address).connect()


def test_the_session_folders_of_killed_processes_go_when_the_next_ray_starts(tmp_path: Path) -> None:
    ours, other, killed, not_ours = (tmp_path / f"session_{name}" for name in ("ours", "other", "killed", "theirs"))
    for folder in (ours, other, killed, not_ours):
        (folder / "logs").mkdir(parents=True)
    (killed / LOCK).touch()  # what is left of a lock when its process has ended
    (tmp_path / "session_latest").symlink_to(ours.name)
    living = FolderLock(other)
    made = ray_session._LocalSession(ours)
    assert sorted(tmp_path.glob("session_*")) == sorted([ours, other, not_ours, tmp_path / "session_latest"])
    made.remove()
    assert sorted(tmp_path.iterdir()) == sorted([other, not_ours])
    living.remove()
    assert list(tmp_path.iterdir()) == [not_ours]


def test_a_ray_that_requires_a_token_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise ConnectionError("Failed to connect to Ray cluster")

    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", refuse)
    monkeypatch.setattr(ray_session, "_answers", lambda address: True)
    with pytest.raises(ConfigError, match="RAY_AUTH_MODE"):
        RaySession("127.0.0.1:6379").connect()


@pytest.mark.ray
def test_a_program_that_has_joined_another_cluster_is_refused(
    local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own cluster under any name is fine: that is where its runs live."""
    import ray

    own = ray.get_runtime_context().gcs_address
    for address in (None, "auto", "local", own, own.replace("127.0.0.1", "localhost")):
        RaySession(address).connect()
    with pytest.raises(ConfigError, match=own):
        RaySession("127.0.0.1:1").connect()
    with pytest.raises(ConfigError, match="expected HOST:PORT"):
        RaySession("somehost").connect()
    monkeypatch.setattr(ray_session, "_started_here", lambda: False)
    RaySession(None).connect()
    with pytest.raises(ConfigError, match=own):
        RaySession("local").connect()


@pytest.mark.parametrize("where", [{"address": "auto"}, {"cluster": {"moderators": 2}}])
def test_a_place_on_a_cluster_is_not_for_a_run_without_one(where: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"--{next(iter(where))}"):
        moot.run(out=tmp_path / "run", engine="inline", **where)
    assert not (tmp_path / "run").exists()


def test_where_a_run_goes_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert [cluster_address(each) for each in (None, "auto", "10.0.0.1:6379")] == [None, "auto", "10.0.0.1:6379"]
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert (cluster_address(None), cluster_address("local")) == ("10.0.0.1:6379", None)
    for nowhere in ("http://10.0.0.1:8265", "local", ""):
        monkeypatch.setenv("RAY_ADDRESS", nowhere)
        assert cluster_address(None) is None


def test_a_client_address_is_refused_before_anything_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "ray://10.0.0.1:10001")
    with pytest.raises(ConfigError, match="ray job submit"):
        moot.run(out=tmp_path / "run", address="auto")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("amounts", "free", "expected"),
    [
        ({"CPU": 1.0}, [{"CPU": 0.5}, {"CPU": 0.5}], ("CPU 1 for an agent", "no node has it free")),
        ({"CPU": 3.0}, [{"CPU": 4.0}, {"CPU": 4.0}], ("CPU 3 for an agent", "no node has it yet")),
        (
            {"CPU": 1.0, "GPU": 1.0},
            [{"CPU": 2.0}, {"GPU": 1.0}],
            ("CPU 1 with GPU 1 for an agent", "no node has it free"),
        ),
        ({"CPU": 1.0}, [{}, {"CPU": 1.0}], ("a process for an agent", "it is being started")),
        ({}, [{}], ("a process for an agent", "it is being started")),
    ],
)
def test_a_slow_start_is_distinguished_from_a_lack_of_cpus(
    amounts: dict[str, float], free: list[dict[str, float]], expected: tuple[str, str]
) -> None:
    assert unplaced_reason([ResourceRequest("agent", amounts)], [{"CPU": 2.0, "GPU": 1.0}] * 2, free) == expected


def test_the_wait_of_a_first_run_that_works_is_not_logged() -> None:
    """Nor is one whose reasons each last for a short time."""
    lacking, in_use, starting = "no node has it yet", "no node has it free", "it is being started"
    notice = placing_module.WaitNotice()
    quick = [(starting, 0.0), (starting, 119.0), (lacking, 120.0), (lacking, 149.0), (in_use, 150.0), (in_use, 179.0)]
    assert not any(notice.is_due("CPU 1 for a writer", why, now) for why, now in quick)
    slow = [(180.0, True), (182.0, False), (240.0, False), (240.5, True)]
    assert [notice.is_due("CPU 1 for a writer", in_use, now) for now, _ in slow] == [due for _, due in slow]
    assert notice.is_due("CPU 1 for an agent", in_use, 241.0)
    assert [notice.is_due("a process", starting, now) for now in (242.0, 361.0, 362.0)] == [False, False, True]


@pytest.mark.ray
async def test_waiting_for_cpus_is_logged_and_continues(local_ray: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr(placing_module, "_LOOK_S", 0.2)
    monkeypatch.setattr(placing_module, "_QUIET_S", 0.0)
    taken = ray.util.placement_group([{"CPU": 2}])
    await taken.ready()
    namespace = ray.get_runtime_context().namespace
    placer = ActorScheduler(ClusterSettings(num_cpus={"agent": 1.0}), LAPTOP, namespace, can_grow=True)
    placer.place(_here(), "agent", "waits-for-a-place")
    with structlog.testing.capture_logs() as logs:
        waiting = asyncio.create_task(placer.placed())
        async with asyncio.timeout(60):
            while not logs:  # noqa: ASYNC110 - a line of the log
                await asyncio.sleep(0.01)
        ray.util.remove_placement_group(taken)
        async with asyncio.timeout(60):
            await waiting
    placer.take_down()
    told = [(line["needs"], line["why"], line["waiting"]) for line in logs]
    assert told[:1] == [("CPU 1 for an agent", "no node has it free", 1)]


@pytest.mark.ray
async def test_what_a_cluster_never_gets_ends_the_wait(local_ray: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr(placing_module, "_LOOK_S", 0.1)
    monkeypatch.setattr(placing_module, "_QUIET_S", 0.0)
    cluster_settings = ClusterSettings(resources={"unobtainium": 2.0}, wait_s=0.2)
    placer = ActorScheduler(cluster_settings, CLUSTER, ray.get_runtime_context().namespace, can_grow=True)
    placer.place(_here(), "writer", "never-placed")
    with structlog.testing.capture_logs() as logs:
        async with asyncio.timeout(60):
            with pytest.raises(ConfigError, match="unobtainium 2 for a writer"):
                await placer.placed()
    placer.take_down()
    assert [line["why"] for line in logs] == ["no node has it yet"]


def _here() -> type:
    """An actor that Ray carries whole: its worker imports nothing of this file."""

    class Here:
        async def where(self) -> str:
            return "here"

    return Here


def test_a_key_may_be_the_content_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ApiKey("MOOT_TEST_KEY")
    monkeypatch.delenv("MOOT_TEST_KEY", raising=False)
    monkeypatch.setenv("MOOT_TEST_KEY_FILE", str(tmp_path / "key"))
    with pytest.raises(MissingKey, match="MOOT_TEST_KEY_FILE"):
        key.read()
    (tmp_path / "key").write_text("sk-of-a-file\n")
    assert (key.read(), key.set) == ("sk-of-a-file", True)
    monkeypatch.setenv("MOOT_TEST_KEY", "sk-of-the-variable")
    assert key.read() == "sk-of-the-variable"
    (tmp_path / "key").write_text("two words")
    monkeypatch.delenv("MOOT_TEST_KEY")
    with pytest.raises(MissingKey, match="MOOT_TEST_KEY_FILE") as error:
        key.read()
    assert "two words" not in str(error.value)
