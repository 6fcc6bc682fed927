"""Hundreds of debates on a cluster that loses a process every few seconds, a node, and its driver twice.

The oracle is the simulated model's HTTP server, which counts the calls that it served by step key, and a run of the
same seed that nobody disturbed.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from journal_writer import assert_same_signals
from nodes import LiveActor, LocalCluster, nodes
from simulate_process import SimulatedServerProcess, serving, undisturbed, verdicts, write_questions
from small_runs import ENCODER

from moot.actors.record.folder import RunFolder
from moot.actors.record.journal import FLUSH_ROWS, FLUSH_S
from moot.actors.record.signal_file import SignalReader
from moot.actors.record.signal_recovery import recover_signals
from moot.actors.record.tables import read_table

ACTORS = ("moderator", "agent", "judge", "writer", "limiter")
EACH = 1
AGENT_PROCESSES = 2
"""Processes per service: an agent or judge that is killed had about so large a part of the calls in flight."""

_WINDOWS = {
    # What a victim holds that nobody else has: rows on their way to the writer, and at the writer those not flushed.
    "moderator": 0,
    "agent": 1,
    "judge": 1,
    "writer": 1,
    "limiter": 0,
    "node": 2,
    "driver": 2,
}
_IN_FLIGHT_PART = {"agent": 1 / AGENT_PROCESSES, "judge": 1 / AGENT_PROCESSES, "node": 1.0, "driver": 1.0}
"""A moderator's calls go on in its agents, and are joined."""

_BURST = 1.5
"""Calls come unevenly: a window may hold so many times the calls of a mean one."""


class Driver:
    """`moot run` as a process; killed, it is started again with the same command, which is all the help there is."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command, self._log = [sys.executable, "-m", "moot", *command], log
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with open(self._log, "ab") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill_and_start_again(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        self.process = self._start()

    def end(self) -> None:
        """Leave no driver behind, whatever became of the test."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)


class ChaosMonkey:
    """Kills, and keeps count of what each kill may cost.

    Args:
        nodes: the cluster.
        server: counts calls.
        seed: of the choice of victims.

    Attributes:
        allowed: calls that the kills so far may have made to be paid again.
    """

    def __init__(self, nodes: LocalCluster, server: SimulatedServerProcess, seed: int) -> None:
        self._nodes, self.server = nodes, server
        self._random = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.allowed = 0
        self._looked_at, self._calls = time.monotonic(), 0

    def kill_an_actor(self) -> None:
        """SIGKILL for an actor that chance chooses, of a kind that was not hit `EACH` times yet."""
        alive = {kind: found for kind in ACTORS if self.kills[kind] < EACH and (found := self._alive(kind))}
        if not alive:
            return
        kind = self._random.choice(sorted(alive))
        victim = self._random.choice(alive[kind])
        before = self.server.totals()
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.pid, signal.SIGKILL)
            self._note(kind, before)

    def _alive(self, kind: str) -> list[LiveActor]:
        return [a for a in self._nodes.actors() if f"-{kind}-" in f"{a.name}-" and psutil.pid_exists(a.pid)]

    def lose_the_busiest_node(self) -> None:
        """The worker node with most actors on it is gone, and another one comes."""
        homes = Counter(actor.node_id for actor in self._nodes.actors())
        victim = max(self._nodes.workers, key=lambda node: homes[node.node_id])
        self._note("node", self.server.totals())
        self._nodes.lose(victim)
        self._nodes.add(2)

    def kill_the_driver(self, driver: Driver) -> None:
        """And start it again."""
        self._note("driver", self.server.totals())
        self._nodes.note_processes()
        driver.kill_and_start_again()

    def _note(self, kind: str, stats: Mapping[str, Any]) -> None:
        """Count a kill, and what it may cost: the victim's part of the calls in flight, and the windows that it holds
        at the rate of the calls since the last kill."""
        now = time.monotonic()
        rate = (stats["calls"] - self._calls) / max(0.1, now - self._looked_at)
        self._calls, self._looked_at = stats["calls"], now
        window = min(FLUSH_ROWS, math.ceil(_BURST * rate * FLUSH_S))
        self.kills[kind] += 1
        self.allowed += math.ceil(stats["in_flight"] * _IN_FLIGHT_PART.get(kind, 0.0)) + _WINDOWS[kind] * window
        print(f"{kind} is killed, {stats['in_flight']} calls in flight, {rate:.0f} calls/s", flush=True)


pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

CASES = 240
OPEN = 40
SEED = 11
SETTINGS = ["--seed", str(SEED), "--set", "agents=2", "--encoder", ENCODER]
LATENCY_MS, JITTER_MS = 900.0, 500.0
EVERY_S, AT_LEAST_EVERY_S = 2.0, 12.0
CALLS_BETWEEN = 40
"""New calls that are served between two kills, or the longer time has passed: on a machine that is too busy to start
processes in two seconds nothing would ever come back."""

DRIVER_DIES_AT = (0.35, 0.75)
NODE_DIES_AT = 0.55
ENDS_WITHIN_S = 400.0


def test_a_run_outlives_everything(tmp_path: Path) -> None:
    task = write_questions(tmp_path / "made.jsonl", CASES)
    expected = undisturbed(task, tmp_path / "undisturbed", *SETTINGS, "--save-tokens", "none")
    assert len(expected) == CASES
    steps = read_table(RunFolder(tmp_path / "undisturbed"), "turns", []).num_rows
    folder, log = tmp_path / "run", tmp_path / "driver.log"
    with serving(task, SEED, latency_ms=LATENCY_MS, jitter_ms=JITTER_MS) as server, nodes(0, [2, 2, 2]) as cluster:
        command = ["run", "--task", task, *SETTINGS, "--model", server.model, "--placement", "actors"]
        command += ["--address", cluster.address, "--max-open", str(OPEN), "--out", str(folder), "--quiet"]
        command += ["--cluster", "moderators=2", "--cluster", f"agent_processes={AGENT_PROCESSES}"]
        driver, havoc = Driver(command, log), ChaosMonkey(cluster, server, SEED)
        try:
            _disturb(havoc, driver, steps)
        finally:
            driver.end()
        cluster.note_processes()
        left = cluster.actors()
        stats = server.stats()
    assert driver.process.returncode == 0, log.read_text()[-3000:]
    assert left == []
    assert cluster.leaked() == []
    assert verdicts(folder) == expected
    signals = SignalReader(folder).signals()
    assert signals.rounds("d").n[0] == CASES  # of each debate its gate, once
    assert_same_signals(signals, recover_signals(RunFolder(folder), lambda _: True))
    again = stats["calls"] - len(stats["by_step"])
    allowed = havoc.allowed + len(stats["by_step"]) // 100
    print(f"{again} of {len(stats['by_step'])} calls paid again, {allowed} allowed")
    assert again <= allowed < len(stats["by_step"])
    assert havoc.kills == {**dict.fromkeys(ACTORS, EACH), "driver": 2, "node": 1}


def _disturb(havoc: ChaosMonkey, driver: Driver, steps: int) -> None:
    """Kill everything that there is to kill, one after another, and wait until the driver has ended by itself."""
    began, driver_dies_at, node_dies_at = time.monotonic(), list(DRIVER_DIES_AT), [NODE_DIES_AT]
    while driver.process.poll() is None and not havoc.server.totals()["steps"]:
        time.sleep(0.1)
    last_kill, served_before = time.monotonic(), 0
    while driver.process.poll() is None:
        assert time.monotonic() - began < ENDS_WITHIN_S, "the run hangs"
        time.sleep(0.2)
        since_s = time.monotonic() - last_kill
        if since_s < EVERY_S:
            continue
        served = havoc.server.totals()["steps"]
        if served - served_before < CALLS_BETWEEN and since_s < AT_LEAST_EVERY_S:
            continue
        last_kill, served_before = time.monotonic(), served
        done = served / steps
        if driver_dies_at and done >= driver_dies_at[0]:
            driver_dies_at.pop(0)
            havoc.kill_the_driver(driver)
        elif node_dies_at and done >= node_dies_at[0]:
            node_dies_at.pop()
            havoc.lose_the_busiest_node()
        else:
            havoc.kill_an_actor()
