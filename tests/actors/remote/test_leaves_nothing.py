"""A run leaves nothing behind: no actor, thread, open file, process, environment variable, signal handler or folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from ray.util import list_named_actors

import moot
from moot.deploy.runs.session import Session
from moot.protocols.errors import ConfigError

OWN_RAY = """
import asyncio, json, os, signal, sys, threading
from pathlib import Path

import psutil
import ray  # sets RAY_CLIENT_MODE when it is imported

import moot

ME = psutil.Process()
TEMPORARY = Path(os.environ["RAY_TMPDIR"])


def found():
    return {
        "environment": dict(os.environ),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "children": [process.name() for process in ME.children(recursive=True)],
        "elsewhere": [each.pid for each in psutil.process_iter() if str(TEMPORARY) in " ".join(_command(each))],
        "handler": repr(signal.getsignal(signal.SIGTERM)),
        "folders": sorted(str(path) for path in TEMPORARY.rglob("*") if path.name != "ray"),
    }


def _command(process):
    try:
        return [] if process.pid == ME.pid else process.cmdline()
    except psutil.Error:
        return []


async def notebook():
    return moot.run(task="sample", limit=2, out="run")


def main():
    before = found()
    try:
        moot.run(task="sample", limit=2, out="never", cluster={"resources": {"unobtainium": 1}})
    except moot.UserError as error:
        refused = str(error)
    after_failure, files = found(), ME.num_fds()
    status = asyncio.run(notebook()).status
    print(json.dumps({
        "refused": refused, "folder": Path("never").exists(), "status": status, "before": before,
        "after failure": after_failure, "after": found(), "files": [files, ME.num_fds()], "up": ray.is_initialized(),
    }))


if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_a_local_ray_is_removed_after_a_run_and_after_a_failed_start(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(OWN_RAY)
    with tempfile.TemporaryDirectory(prefix="moot-") as temporary:  # Ray's sockets need a short path
        environment = {**os.environ, "RAY_TMPDIR": temporary, "HOME": str(tmp_path)}
        for name in ("RAY_AUTH_MODE", "RAY_ADDRESS"):
            environment.pop(name, None)
        done = subprocess.run(
            [sys.executable, "script.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert "no node of the cluster has unobtainium 1" in said["refused"]
    assert (said["folder"], said["status"], said["up"]) == (False, "finished", False)
    assert said["before"]["children"] == said["before"]["elsewhere"] == []
    for what, was in said["before"].items():
        assert said["after failure"][what] == was, what
        assert said["after"][what] == was, what
    first, last = said["files"]
    assert last <= first + 2, "more stays open than each `ray.init` and `ray.shutdown` of Ray 2.60 leaves by itself"


_RUNS = re.compile(r"ray::.*(Agent|Moderator|Metrics|Limiter)Actor")


def _ours() -> dict[str, Any]:
    """What a run could have left in this process and in its Ray."""
    return {
        "actors": list_named_actors(all_namespaces=True),
        "processes": _workers(),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "environment": dict(os.environ),
        "namespace": ray.get_runtime_context().namespace,
    }


def _workers() -> list[str]:
    return [title for each in psutil.Process().children(recursive=True) if _RUNS.match(title := _title(each))]


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _ours_once(as_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ray ends a killed actor's process, and forgets its name, a moment later."""
    for _ in range(300):
        if as_wanted(now := _ours()):
            break
        time.sleep(0.1)
    return now


@pytest.mark.slow
@pytest.mark.ray
def test_a_callers_ray_is_as_it_was(local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a run that ended, one that was interrupted, and one that was refused."""
    moot.run(task="sample", limit=1, out=tmp_path / "first")  # what is only loaded once
    before = _ours_once(lambda now: not now["processes"])
    assert not before["processes"], "left by the runs before"
    files = psutil.Process().num_fds()

    def assert_as_before() -> None:
        assert _ours_once(lambda now: now == before) == before
        assert ray.is_initialized()
        assert psutil.Process().num_fds() <= files + 5, "a handful, for the connections that Ray keeps to its nodes"

    assert moot.run(task="sample", limit=3, out=tmp_path / "finished", placement="packed").status == "finished"
    assert_as_before()
    _interrupted_while_it_debates(tmp_path / "stopped", monkeypatch)
    assert_as_before()
    with pytest.raises(ConfigError, match="unobtainium 1"):
        moot.run(out=tmp_path / "refused", cluster={"resources.unobtainium": 1, "wait_s": 0.1})
    assert not (tmp_path / "refused").exists()
    assert_as_before()


def _interrupted_while_it_debates(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`KeyboardInterrupt` in the thread that waits, as of Ctrl-C, whose signal the processes of a test run ignore."""
    sessions: list[Session] = []
    told = threading.Event()
    begun = Session.run

    def interrupting(futures: Any, timeout: float) -> Any:
        if sessions and sessions[0].is_running and not told.is_set():
            assert _workers(), "the actors of a live run are seen"
            told.set()
            raise KeyboardInterrupt
        return wait(futures, timeout=0.02)

    def hold(session: Session) -> Any:
        sessions.append(session)
        return begun(session)

    with monkeypatch.context() as patched:
        patched.setattr("moot.deploy.runs.interruption.wait", interrupting)
        patched.setattr(Session, "run", hold)
        with pytest.raises(KeyboardInterrupt):
            moot.run(task="sample", model="simulated?latency_ms=200", out=out)
    assert told.is_set()
