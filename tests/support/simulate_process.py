"""`moot simulate` in its own process, with counters of its requests; and questions for it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.actors.record.folder import RunFolder
from moot.actors.record.schema import stable_columns
from moot.actors.record.tables import read_table

_THINGS = ("lamp", "river", "clock", "garden", "engine", "letter")


@dataclass(frozen=True)
class SimulatedServerProcess:
    """HTTP server of the simulated model in a process."""

    port: int

    @property
    def model(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1#sim"

    def stats(self) -> dict[str, Any]:
        """Its counters."""
        return self._get("/stats")

    def totals(self) -> dict[str, Any]:
        """Its counters without those by step, of which there may be thousands."""
        return self._get("/stats/totals")

    def _get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as reply:
            found: dict[str, Any] = json.load(reply)
            return found

    def served(self) -> dict[str, int]:
        """Number of answered calls by step key."""
        return {step: stats["calls"] for step, stats in self.stats()["by_step"].items()}


def write_questions(path: Path, count: int) -> str:
    """Write a number of questions in the public BoolQ format; returns the task's spec."""
    with open(path, "w", encoding="utf-8") as file:
        for i in range(count):
            thing = _THINGS[i % len(_THINGS)]
            passage = f"The {thing} number {i} is blue. It was made in {1800 + i}. Nobody has painted it since."
            row = {
                "question": f"is the {thing} number {i} blue", "title": thing, "answer": i % 3 > 0, "passage": passage
            }  # fmt: skip
            file.write(json.dumps(row) + "\n")
    return f"boolq:{path}"


def undisturbed(task: str, folder: Path, *settings: str) -> list[dict[str, Any]]:
    """Verdicts of an uninterrupted run: the embedded model with the same seed gives the same replies as the server."""
    command = [sys.executable, "-m", "moot", "run", "--task", task, *settings, "--engine", "inline", "--quiet"]
    subprocess.run([*command, "--out", str(folder)], check=True, stdout=subprocess.DEVNULL, timeout=200)
    return verdicts(folder)


def verdicts(folder: Path) -> list[dict[str, Any]]:
    """Deterministic columns of a run's verdicts, by case."""
    table = read_table(RunFolder(folder), "verdicts", stable_columns("verdicts"))
    rows: list[dict[str, Any]] = table.select(stable_columns("verdicts")).sort_by("case_id").to_pylist()
    return rows


@contextmanager
def serving(task: str, seed: int, *, latency_ms: float, jitter_ms: float) -> Iterator[SimulatedServerProcess]:
    """Context with a running server."""
    command = [sys.executable, "-m", "moot", "simulate", "--port", "0", "--task", task, "--seed", str(seed)]
    process = subprocess.Popen(
        [*command, "--latency-ms", str(latency_ms), "--jitter-ms", str(jitter_ms)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            found = [word for word in line.replace("/", " ").replace(":", " ").split() if word.isdigit()]
            ports = [int(word) for word in found if int(word) > 1023]
            if ports:
                yield SimulatedServerProcess(ports[0])
                return
        raise AssertionError("the server ended before it was ready")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()
