"""The application as Ray Serve runs it: one replica, the engine's actors behind it, a replica that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
import yaml
from served import CASE, Client

from moot.actors.record.tables import read_table
from moot.deploy.serving.settings import CONFIG_ENV

# Ray Serve's own code warns while it is imported and while it runs.
pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.filterwarnings("ignore")]
TOKEN_ENV, TOKEN = "MOOT_SERVE_TEST_TOKEN", "a-long-token-of-the-test"
MANIFEST = Path(__file__).parents[2] / "deploy" / "kubernetes" / "ray-service.yaml"
DEBATES = {"engine": "ray", "placement": "packed", "model": "simulated?latency_ms=300"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def port(local_ray: None) -> Iterator[int]:
    """Where Ray Serve listens in this process's Ray; all of Serve is gone at the end."""
    from ray import serve

    found = free_port()
    quiet = {"log_level": "ERROR"}
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": found}, logging_config=quiet)
    yield found
    serve.shutdown()


@asynccontextmanager
async def client(port: int) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(f"http://127.0.0.1:{port}", session)


def replicas() -> list[psutil.Process]:
    everybody = psutil.Process().children(recursive=True)
    return [each for each in everybody if any("ServeReplica:moot" in part for part in _command(each))]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def engine_actors() -> list[str]:
    from ray.util import list_named_actors

    names = [actor["name"] for actor in list_named_actors(all_namespaces=True)]
    return [name for name in names if name.startswith("moot-")]


async def answered(asked: Client, path: str) -> Any:
    """Once the server answers again."""
    async with asyncio.timeout(60):
        while True:
            try:
                answer = await asked.get(path)
                if answer.status == 200:
                    return answer.json
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)


async def test_a_replica_that_is_killed_comes_back_and_goes_on(port: int, tmp_path: Path) -> None:
    from ray import serve

    from moot.deploy.app import build

    app = build({"out": str(tmp_path / "out"), "debates": DEBATES, "stream_s": 5, "drain_s": 20})
    await asyncio.to_thread(serve.run, app, name="moot", route_prefix="/", logging_config={"log_level": "ERROR"})
    async with client(port) as asked:
        assert (await asked.get("/readyz")).status == 200
        strange = await asked.get("/v1/stats", headers={"Host": "evil.example"})
        assert (strange.status, strange.code) == (403, "host")
        await asked.post("/v1/debates", {**CASE, "id": "before"})
        assert (await asked.end("/v1/debates/before"))["status"] == "done"
        events = await asked.events("/v1/debates/before/events")
        assert events[-1]["event"] == "end"
        for number in range(8):
            accepted = await asked.post("/v1/debates", {"question": f"is {number} a prime", "id": f"q{number}"})
            assert accepted.status == 202
        (replica,) = replicas()
        os.kill(replica.pid, signal.SIGKILL)
        assert (await answered(asked, "/v1/debates/before"))["verdict"]["reused"]
        ends = [await asked.end(f"/v1/debates/q{number}") for number in range(8)]
        assert {end["status"] for end in ends} == {"done"}
    assert len(await asyncio.to_thread(engine_actors)) >= 2
    await asyncio.to_thread(serve.delete, "moot")
    assert await asyncio.to_thread(engine_actors) == []
    verdicts = read_table(tmp_path / "out" / "debates", "verdicts", ["failed"]).to_pylist()
    assert sorted(row["case_id"] for row in verdicts) == ["before", *(f"q{number}" for number in range(8))]
    status = yaml.safe_load((tmp_path / "out" / "debates" / "run.yaml").read_text())["sessions"][-1]["status"]
    assert status == "finished"


async def test_the_application_is_configured_by_a_file_that_the_environment_names(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    from ray import serve

    import moot.deploy.app

    token = tmp_path / "token"
    token.write_text(TOKEN)
    config = {"out": str(tmp_path / "out"), "debates": {"engine": "inline"}, "token_file": str(token), "stream_s": 5}
    (tmp_path / "serve.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "serve.yaml"))
    app = importlib.reload(moot.deploy.app).app
    await asyncio.to_thread(serve.run, app, name="moot", route_prefix="/", logging_config={"log_level": "INFO"})
    async with client(port) as asked:
        assert (await asked.get("/healthz")).status == 200
        assert (await asked.post("/v1/debates", CASE)).status == 401
        asked.headers["Authorization"] = f"Bearer {TOKEN}"
        marked = {"question": "is this passage logged", "passage": "a-passage-for-no-log", "id": "one"}
        assert (await asked.post("/v1/debates", marked)).status == 202
        assert (await asked.end("/v1/debates/one"))["status"] == "done"
        await asyncio.to_thread(_worker_goes)
        assert (await asked.post("/v1/debates", {**marked, "id": "two"})).status == 503
    record = yaml.safe_load((tmp_path / "out" / "debates" / "run.yaml").read_text())
    assert record["sessions"][-1]["status"] == "finished"
    await asyncio.to_thread(serve.delete, "moot")
    logs = Path(_session()) / "logs"
    written = [path.read_bytes() for path in logs.rglob("*") if path.is_file()]
    assert any(b"POST / 202" in each for each in written)
    for secret in (TOKEN.encode(), b"a-passage-for-no-log"):
        assert not any(secret in each for each in written)


def _worker_goes() -> None:
    """What the manifest has a worker's pod do before it is ended."""
    import ray

    service = list(yaml.safe_load_all(MANIFEST.read_text()))[1]
    (workers,) = service["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    (container,) = workers["template"]["spec"]["containers"]
    place = {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    env = {**os.environ, **place, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    done = subprocess.run(["/bin/sh", "-x", *command[1:]], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "sleep" not in done.stderr  # it drained the replica, and did not wait for one


def _session() -> str:
    import ray

    found: str = ray._private.worker._global_node.get_session_dir_path()
    return found
