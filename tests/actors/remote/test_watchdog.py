"""Watchdog: a process that neither dies nor answers is killed, and the run continues as after a death."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import structlog

from moot.actors.remote import watchdog
from moot.deploy.runs.run import run

pytestmark = [pytest.mark.slow, pytest.mark.ray]
AT_WORK_S = 2.0
HANG = ("ray::ModeratorActor", "ray::MetricsActor", "ray::AgentActor")


def _stop_one_of_each(run_ended: threading.Event) -> None:
    """SIGSTOP, once each of them has been there for a while."""
    waiting, seen_at = set(HANG), dict[int, float]()
    while waiting and not run_ended.wait(0.2):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                kind = next((each for each in waiting if " ".join(process.cmdline()).startswith(each)), None)
                if (
                    kind is not None
                    and time.monotonic() - seen_at.setdefault(process.pid, time.monotonic()) > AT_WORK_S
                ):
                    process.suspend()
                    waiting.discard(kind)


def test_a_hanging_actor_is_killed_and_its_work_resumes(
    local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "_ASK_EACH_S", 0.5)
    monkeypatch.setattr(watchdog, "UNRESPONSIVE_S", 1.0)
    monkeypatch.setattr(watchdog, "HUNG_S", 5.0)
    ended = threading.Event()
    stopping = threading.Thread(target=_stop_one_of_each, args=(ended,))
    stopping.start()
    try:
        with structlog.testing.capture_logs() as logs:
            found = run(task="sample", limit=24, max_open=8, model="simulated?latency_ms=1000", out=tmp_path / "run")
    finally:
        ended.set()
        stopping.join()
    hung = {
        line["actor"].split("-")[2] for line in logs if line["event"].startswith("the process of an actor is ended")
    }
    assert {"moderator", "writer", "role"} <= hung
    assert (found.done, found.failed) == (24, 0)
