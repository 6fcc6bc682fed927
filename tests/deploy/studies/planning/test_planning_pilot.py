"""What a plan makes of a record: re-asks, failures, other runs' replies, later attempts, waits; and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai_server import simulated_server
from plan_regimes import rows_file
from typer.testing import CliRunner

import moot
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.tables import read_table
from moot.deploy.cli.main import app
from moot.deploy.runs.run import run
from moot.deploy.studies.planning.pilot import read_pilot
from moot.deploy.studies.planning.plan import plan
from moot.protocols.errors import ConfigError, RecordError, UserError


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 24 cases on the embedded model, three calls under way at most by its server's leave."""
    out = tmp_path_factory.mktemp("planning") / "pilot"
    run(task="sample", limit=24, engine="inline", out=out, model="simulated?latency_ms=5")
    return out


def rows(folder: Path, table: str, *names: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(folder, table, list(names)).to_pylist()
    return found


def test_every_call_of_the_record_is_planned_once(record: Path) -> None:
    pilot = read_pilot(record)
    turns = rows(record, "turns", "prompt_tokens", "completion_tokens")
    assert pilot.calls.sum() == len(turns)
    assert pilot.prompt_tokens.sum() == sum(row["prompt_tokens"] for row in turns)
    how = [row["how"] for row in rows(record, "verdicts", "how")]
    assert pilot.skipped.sum() == how.count("skipped") > 0
    assert pilot.simulated
    assert pilot.in_process
    assert pilot.waits_unknown == pilot.interrupted == pilot.unfinished == 0


def test_waits_for_leave_are_no_latency(tmp_path: Path) -> None:
    with simulated_server(None, port=0, latency_ms=30.0) as port:
        model = f"http://127.0.0.1:{port}/v1#simulated"
        task = rows_file(tmp_path / "rows.jsonl", 0, 6)
        run(task=f"boolq:{task}", engine="inline", out=tmp_path / "run", model=model, concurrency=2)
    pilot = read_pilot(tmp_path / "run")
    turns = rows(tmp_path / "run", "turns", "latency_s", "waited_s")
    assert max(row["waited_s"] for row in turns) > 0.15
    assert pilot.busy_s.sum() == pytest.approx(sum(row["latency_s"] - row["waited_s"] for row in turns), rel=1e-6)
    walls = [row["wall_s"] for row in rows(tmp_path / "run", "verdicts", "wall_s")]
    assert 0.03 <= pilot.alone_s.min() <= pilot.alone_s.max() < max(walls)
    assert pilot.under_way in (2, 3), "a reply that is read late overlaps with the next call"
    (warning,) = plan(tmp_path / "run", cases=10_000).warnings
    assert f"--concurrency {pilot.under_way}" in warning
    assert plan(tmp_path / "run", cases=10_000, concurrency=2).warnings == ()


def test_unreadable_replies_and_retries_are_calls_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.actors.agent.agent.RetryPolicy", partial(RetryPolicy, base_s=0.01))
    with simulated_server(None, port=0, latency_ms=30.0, garble_rate=0.3, fail_rate=0.2, seed=2) as port:
        model = f"http://127.0.0.1:{port}/v1#simulated"
        task = rows_file(tmp_path / "rows.jsonl", 0, 8)
        run(task=f"boolq:{task}", engine="inline", out=tmp_path / "run", model=model)
    turns = rows(tmp_path / "run", "turns", "outcome", "http_attempts")
    pilot = read_pilot(tmp_path / "run")
    assert any(row["outcome"] == "invalid" for row in turns)
    assert pilot.calls.sum() == len(turns)
    assert pilot.requests.sum() == sum((row["http_attempts"] or 1) for row in turns) > len(turns)
    assert (pilot.busy_s[:, 0] >= 0.025 * pilot.calls).all()
    found = plan(tmp_path / "run", cases=800)
    assert found.totals.requests.value > found.totals.calls.value


def test_debates_with_replies_of_another_run_are_left_out(record: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    run(task="sample", limit=24, engine="inline", out=whole, model="simulated?latency_ms=5", reuse=record)
    with pytest.raises(UserError, match=r"24 debates.*--from"):
        plan(whole, cases=100)
    part = tmp_path / "part"
    run(task="sample", limit=40, engine="inline", out=part, model="simulated?latency_ms=5", reuse=record)
    found = plan(part, cases=100)
    assert found.pilot.debates == 16
    assert any("24 debates with replies of another run" in remark for remark in found.remarks)


def test_one_debate_is_no_pilot(tmp_path: Path) -> None:
    """Every interval would be a point."""
    run(task="sample", limit=1, engine="inline", out=tmp_path / "one")
    with pytest.raises(UserError, match="one debate"):
        plan(tmp_path / "one", cases=100)


def test_failed_cases_are_expected_and_later_attempts_left_out(tmp_path: Path) -> None:
    out, task = tmp_path / "run", rows_file(tmp_path / "rows.jsonl", 0, 10)
    with simulated_server(None, port=0, garble_rate=0.9, seed=1) as port:
        model = f"http://127.0.0.1:{port}/v1#simulated"
        for again in (False, True):
            run(task=f"boolq:{task}", engine="inline", out=out, model=model, retry_failed=again)
    first = [row for row in rows(out, "verdicts", "failed") if row["attempt"] == 0]
    found = plan(out, cases=1000)
    assert found.totals.failed.value == 100 * sum(bool(row["failed"]) for row in first) > 0
    assert any("second attempts" in remark for remark in found.remarks)
    assert found.totals.cost_usd is None
    assert any("cost is unknown" in remark for remark in found.remarks)


def test_a_record_with_a_large_number_of_debates_is_sampled(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.studies.planning.pilot.MOST_DEBATES", 10)
    one, again, other = read_pilot(record, seed=1), read_pilot(record, seed=1), read_pilot(record, seed=2)
    assert (one.debates, one.sampled_from) == (10, 24)
    assert (one.prompt_tokens == again.prompt_tokens).all()
    assert (one.prompt_tokens != other.prompt_tokens).any()


def test_a_folder_without_a_run_and_a_wrong_bound_are_refused(record: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no run there"):
        plan(tmp_path, cases=10)
    with pytest.raises(ConfigError, match="--cases"):
        plan(tmp_path)
    with pytest.raises(ConfigError, match="--cores-per-node"):
        plan(record, cases=10, cores_per_node=4)


def test_the_command_shows_what_python_gives(record: Path) -> None:
    words = ["plan", "--from", str(record), "--cases", "500", "--limit-rpm", "6000", "--seed", "3"]
    text = CliRunner().invoke(app, words)
    assert text.exit_code == 0
    for part in ("bottleneck", "requests per minute", "a simulated model", "to which no limit applies"):
        assert part in " ".join(text.output.split())
    shown = json.loads(CliRunner().invoke(app, [*words, "--format", "json"]).output)
    found = moot.plan(record, cases=500, limit_rpm=6000, seed=3)
    assert isinstance(found, moot.RunPlan)
    assert shown["time_s"] == {"value": found.time_s.value, "interval": [found.time_s.low, found.time_s.high]}
    assert shown["binding"]["constraint"] == found.binding == "rpm"
    assert shown["totals"]["calls"]["value"] == found.totals.calls.value
    assert tuple(shown["remarks"]) == found.remarks


def test_planning_needs_no_ray(record: Path) -> None:
    code = (
        f"import sys, moot; moot.plan({str(record)!r}, cases=2); "
        "sys.exit('ray' in sys.modules or 'fastapi' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
