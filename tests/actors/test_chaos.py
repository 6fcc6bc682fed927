"""Four hundred debates on a cluster that loses a process every few seconds, a node, and its driver twice.

The oracle is the simulated model's HTTP server, which counts the calls that it served by step key, and a run of the
same seed that nobody disturbed.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from havoc import ACTORS, AGENT_PROCESSES, EACH, Driver, Havoc
from houses import ENCODER
from nodes import nodes
from simulate_process import serving, undisturbed, verdicts, write_questions

from moot.actors.record.folder import RunFolder
from moot.actors.record.tables import read_table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

CASES = 400
OPEN = 40
SEED = 11
SETTINGS = ["--seed", str(SEED), "--set", "agents=2", "--encoder", ENCODER]
LATENCY_MS, JITTER_MS = 900.0, 500.0
EVERY_S, AT_LEAST_EVERY_S = 2.0, 12.0
CALLS_BETWEEN = 50
"""New calls that are served between two kills, or the longer time has passed: on a machine that is too busy to start
processes in two seconds nothing would ever come back."""

DRIVER_DIES_AT = (0.3, 0.6)
NODE_DIES_AT = 0.45
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
        driver, havoc = Driver(command, log), Havoc(cluster, server, SEED)
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
    again = stats["calls"] - len(stats["by_step"])
    allowed = havoc.allowed + len(stats["by_step"]) // 100
    print(f"{again} of {len(stats['by_step'])} calls paid again, {allowed} allowed")
    assert again <= allowed < len(stats["by_step"])
    assert havoc.kills == {**dict.fromkeys(ACTORS, EACH), "driver": 2, "node": 1}


def _disturb(havoc: Havoc, driver: Driver, steps: int) -> None:
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
