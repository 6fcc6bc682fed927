"""A CEDA run that is killed again and again: nothing that was on disk is paid for twice, pictures and library included.

The server counts what it served, and the record that a killed process leaves says what was durable then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ceda_material import write_claims, write_documents
from houses import stable_rows
from openai_server import simulated_server, stats_of

from moot.actors.models.trial import STEP_KEY as PROBE
from moot.actors.record.tables import read_table

CLAIMS, OPEN, BRIDGES = 30, 4, 420
BATCH = 256
"""Texts that a library is built by at a time."""

KILLS = ["library.appended:1", "library.appended:2", "moderator.committed:4", "writer.flushed:2", "agent.received:45"]

pytestmark = pytest.mark.slow


@pytest.fixture
def port() -> Iterator[int]:
    with simulated_server(None, seed=5, latency_ms=30.0) as port:
        yield port


def start(folder: Path, material: Path, port: int, **env: str) -> int:
    """Start the command, the same each time, and give its exit code."""
    command = [
        sys.executable,
        "-m",
        "moot",
        *["run", "--protocol", "ceda", "--engine", "inline", "--quiet", "--seed", "3"],
    ]
    command += ["--task", f"claims:{material / 'claims' / 'claims.jsonl'}", "--docs", str(material / "docs")]
    command += ["--model", f"http://127.0.0.1:{port}/v1#sim", "--encoder", f"http://127.0.0.1:{port}/v1#enc"]
    command += ["--set", "vision.prompt=fixed", "--max-open", str(OPEN), "--out", str(folder)]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-2000:]
    return done.returncode


def calls(port: int) -> dict[str, int]:
    """Calls served, by step."""
    return {step: told["calls"] for step, told in stats_of(port)["by_step"].items() if step != PROBE}


def durable(folder: Path) -> set[str]:
    """The steps that are on disk."""
    rows: list[dict[str, Any]] = read_table(folder, "turns", ["outcome"]).to_pylist()
    return {f"{row['case_id']}/{row['attempt']}/{row['path']}" for row in rows}


def test_what_is_on_disk_is_never_paid_for_again(port: int, tmp_path: Path) -> None:
    write_claims(tmp_path / "claims", CLAIMS)
    write_documents(tmp_path / "docs", BRIDGES)
    marks, folder = tmp_path / "marks", tmp_path / "run"
    marks.mkdir()
    plan = {"MOOT_FAILPOINTS": ",".join(KILLS), "MOOT_FAILPOINT_DIR": str(marks)}
    known: dict[str, int] = {}
    embedded: list[int] = []
    while start(folder, tmp_path, port, **plan) != 0:
        served = calls(port)
        assert {step: served[step] for step in known} == known
        known = {step: served[step] for step in durable(folder)}
        embedded.append(stats_of(port)["embedded_texts"])
        assert len(embedded) <= len(KILLS)
    served = calls(port)
    assert {step: served[step] for step in known} == known
    assert sorted(path.name for path in marks.iterdir()) == sorted(entry.replace(":", "-") for entry in KILLS)
    probes = embedded[0] - BATCH
    assert embedded[1] - embedded[0] == 2 * BATCH + probes, "the second start began after the first batch"
    assert 0 <= probes <= 2
    assert durable(folder) == served.keys()
    assert len({step for step in known if step.startswith("shared-")}) == 2, "the pictures were described before a kill"
    assert len(served) > len(known) > 2 * OPEN

    whole = tmp_path / "whole"
    assert start(whole, tmp_path, port) == 0
    for table in ("verdicts", "cases"):
        assert stable_rows(folder, table) == stable_rows(whole, table), table
    library = [[(f.name, f.read_bytes()) for f in sorted((run / "library").iterdir())] for run in (folder, whole)]
    assert library[0] == library[1]
