"""The application as Ray Serve runs it: one replica, the engine's actors behind it, a replica that is killed."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
import yaml
from places import ROOT
from server_client import CASE, ServerClient, until
from waiting import processes_titled

from moot.actors.record.tables import read_table
from moot.deploy.service.settings import CONFIG_ENV

# Ray Serve's own code warns while it is imported and while it runs.
pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.filterwarnings("ignore")]
TOKEN = "a-long-token-of-the-test"
MANIFEST = ROOT / "deploy" / "ops" / "kubernetes" / "ray-service.yaml"
SECRET = {"question": "is this passage logged", "passage": "a-passage-for-no-log"}


def _engine_actors() -> list[str]:
    from ray.util import list_named_actors

    names = [actor["name"] for actor in list_named_actors(all_namespaces=True)]
    return [name for name in names if name.startswith("moot-")]


async def test_a_killed_replica_restarts_and_resumes(
    local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray
    from ray import serve

    import moot.deploy.app

    (tmp_path / "token").write_text(TOKEN)
    debates = {"engine": "ray", "placement": "packed", "model": "simulated?latency_ms=300"}
    config = {"out": str(tmp_path / "out"), "debates": debates, "stream_s": 5, "drain_s": 20}
    (tmp_path / "serve.yaml").write_text(yaml.safe_dump({**config, "token_file": str(tmp_path / "token")}))
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "serve.yaml"))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    info = {"log_level": "INFO"}
    at = {"host": "127.0.0.1", "port": port}
    serve.start(proxy_location="HeadOnly", http_options=at, logging_config={"log_level": "ERROR"})
    app = importlib.reload(moot.deploy.app).app
    await asyncio.to_thread(serve.run, app, name="moot", route_prefix="/", logging_config=info)
    async with aiohttp.ClientSession() as session:
        asked = ServerClient(f"http://127.0.0.1:{port}", session)
        assert (await asked.get("/readyz")).status == 200
        assert (await asked.post("/v1/debates", CASE)).status == 401
        asked.headers["Authorization"] = f"Bearer {TOKEN}"
        await asked.post("/v1/debates", {**SECRET, "id": "before"})
        assert (await asked.end("/v1/debates/before"))["status"] == "done"
        assert (await asked.events("/v1/debates/before/events"))[-1]["event"] == "end"
        for number in range(8):
            accepted = await asked.post("/v1/debates", {"question": f"is {number} a prime", "id": f"q{number}"})
            assert accepted.status == 202
        (replica,) = processes_titled("ray::ServeReplica:moot")
        os.kill(replica.pid, signal.SIGKILL)

        async def answers() -> bool:
            with suppress(aiohttp.ClientError):
                return (await asked.get("/v1/debates/before")).status == 200
            return False

        await until(answers)
        assert (await asked.get("/v1/debates/before")).json["verdict"]["reused"]
        ends = [await asked.end(f"/v1/debates/q{number}") for number in range(8)]
        assert {end["status"] for end in ends} == {"done"}
        assert len(await asyncio.to_thread(_engine_actors)) >= 2
        await asyncio.to_thread(_kill_worker)
        assert (await asked.post("/v1/debates", CASE)).status == 503
    await asyncio.to_thread(serve.delete, "moot")
    assert await asyncio.to_thread(_engine_actors) == []
    verdicts = read_table(tmp_path / "out" / "debates", "verdicts", ["failed"]).to_pylist()
    assert sorted(row["case_id"] for row in verdicts) == ["before", *(f"q{number}" for number in range(8))]
    status = yaml.safe_load((tmp_path / "out" / "debates" / "run.yaml").read_text())["sessions"][-1]["status"]
    assert status == "finished"
    logs = Path(ray._private.worker._global_node.get_session_dir_path()) / "logs"
    written = [path.read_bytes() for path in logs.rglob("*") if path.is_file()]
    assert any(b"POST / 202" in each for each in written)
    for secret in (TOKEN, SECRET["passage"]):
        assert not any(secret.encode() in each for each in written)
    serve.shutdown()


def _kill_worker() -> None:
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
