"""What is done to a run that must survive it: actors, a node and the driver are killed while it goes on."""

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
from nodes import LiveActor, Nodes
from simulate_process import Server

from moot.actors.record.journal import FLUSH_ROWS, FLUSH_S

ACTORS = ("moderator", "agent", "judge", "writer", "limiter")
EACH = 2
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

_BURST = 2.0
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


class Havoc:
    """Kills, and keeps count of what each kill may cost.

    Args:
        nodes: the cluster.
        server: counts calls.
        seed: of the choice of victims.

    Attributes:
        allowed: calls that the kills so far may have made to be paid again.
    """

    def __init__(self, nodes: Nodes, server: Server, seed: int) -> None:
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
