"""`--reuse RUN` and `replay/RUN` as users meet them: figures, refusals, dry run, and a run that was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moot.actors.record.schema import stable_columns
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.summary import summary_rows
from moot.deploy.results.transcript import build_transcript
from moot.deploy.runs.dry_run import plan
from moot.deploy.runs.run import prepare_from, run
from moot.protocols.errors import CapabilityMissing, ConfigError, RunMismatch

FEW = 8
SMALL: dict[str, Any] = {"task": "sample", "engine": "inline", "limit": FEW}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, bound otherwise than by default."""
    roles: dict[str, Any] = {
        "agent": [{"persona": "You doubt."}, {"temperature": 0.9}, {"max_tokens": 300}],
        "judge": {"max_tokens": 200},
    }
    return run(**SMALL, roles=roles, out=tmp_path_factory.mktemp("first") / "first").path


def verdicts(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(folder, "verdicts", stable_columns("verdicts")).to_pylist()
    return sorted(rows, key=lambda row: str(row["case_id"]))


def test_the_figures_of_a_run_that_paid_for_nothing(first: Path, tmp_path: Path) -> None:
    again = run(first / "run.yaml", reuse=first, out=tmp_path / "again")
    before, after = run(first / "run.yaml").summary, again.summary
    assert (after.tokens_paid, after.calls, after.calls_without_usage, after.tokens_repaid) == (0, 0, 0, 0)
    assert (after.tokens_reused, after.replies_reused) == (before.tokens_paid, before.calls)
    assert (after.tokens_per_case, after.token_cost_x) == (before.tokens_per_case, before.token_cost_x)
    assert dict(summary_rows(after))["tokens reused"] == f"{before.tokens_paid:,} in {before.calls} replies"
    assert dict(summary_rows(before))["tokens reused"] == "0"
    assert verdicts(again.path) == verdicts(first)
    cost = build_transcript(again.path, "sample-007").cost
    assert (cost.calls, cost.tokens) == (0, 0)
    assert cost.tokens_reused == build_transcript(first, "sample-007").cost.tokens


def test_only_what_differs_is_paid_for(first: Path, tmp_path: Path) -> None:
    other = run(first / "run.yaml", reuse=first, roles={"judge": {"max_tokens": 150}}, out=tmp_path / "other")
    turns = other.table("turns").to_pylist()
    assert {row["role"].partition("/")[0] for row in turns if row["reused_from"]} == {"agent"}
    assert {row["role"].partition("/")[0] for row in turns if not row["reused_from"]} == {"judge"}
    paid = [row for row in turns if not row["reused_from"]]
    assert other.summary.tokens_paid == sum(row["prompt_tokens"] + row["completion_tokens"] for row in paid)
    assert other.summary.calls + other.summary.replies_reused == len(turns)


def test_what_cannot_be_reused(first: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "run.yaml").write_text("schema_version: 0\n")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "run.yaml").write_text("{")
    for reuse, said in {
        tmp_path / "empty": "run.yaml",
        tmp_path / "nowhere": "run.yaml",
        tmp_path / "old": "schema_version",
        tmp_path / "torn": "cannot be read",
    }.items():
        with pytest.raises(ConfigError, match=f"--reuse .*{said}"):
            run(**SMALL, reuse=reuse, out=tmp_path / "out")
    link = tmp_path / "link"
    link.symlink_to(first)
    with pytest.raises(ConfigError, match="own folder"):
        run(first / "run.yaml", reuse=link)
    assert not (tmp_path / "out").exists()


def test_going_on_with_a_reusing_run(first: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(first / "run.yaml", reuse=first, limit=5, out=out)
    with pytest.raises(RunMismatch, match=rf"seed: .*--out NEW --reuse {out}"):
        run(out / "run.yaml", seed=9, out=out)
    content = yaml.safe_load((out / "run.yaml").read_text())
    dropped = {key: value for key, value in content.items() if key != "reuse"}
    (tmp_path / "dropped.yaml").write_text(yaml.safe_dump(dropped))
    with pytest.raises(RunMismatch, match=r"reuse: was .*first, now none"):
        run(tmp_path / "dropped.yaml", limit=FEW)
    done = run(out / "run.yaml", limit=FEW)
    assert (done.summary.calls, done.done) == (0, FEW)
    assert verdicts(out) == verdicts(first)


def test_reuse_may_be_added_when_a_run_resumes(first: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    paid = run(first / "run.yaml", limit=5, out=out).summary.calls
    done = run(first / "run.yaml", reuse=first, out=out)
    assert (done.summary.calls, done.done) == (paid, FEW)
    assert verdicts(out) == verdicts(first)


def test_dry_run_says_what_is_there(first: Path, tmp_path: Path) -> None:
    prepared = prepare_from(first / "run.yaml", {"reuse": first, "out": tmp_path / "out"})
    replies = read_table(first, "turns", []).num_rows
    assert f"reuse     {replies:,} recorded replies are reused at no cost" in plan(prepared).lines()
    assert not [line for line in plan(prepare_from(first / "run.yaml", {})).lines() if line.startswith("reuse")]


def test_a_replay_is_bound_as_its_run_was(first: Path, tmp_path: Path) -> None:
    """Persona, decoding and the number of models come from the recorded run; nothing has to be repeated."""
    plain = {**SMALL, "model": f"replay/{first}"}
    done = run(**plain, out=tmp_path / "again")
    assert (done.failed, done.exit_code) == (0, 0)
    assert verdicts(done.path) == verdicts(first)
    assert (done.summary.simulated, done.summary.calls) == (True, 0)
    content = yaml.safe_load((done.path / "run.yaml").read_text())
    agents = content["bindings"]["agent"]
    assert [(a["persona"], a["temperature"], a["max_tokens"]) for a in agents] == [
        ("You doubt.", 0.3, 400),
        ("", 0.9, 400),
        ("", 0.3, 300),
    ]
    assert run(**plain, out=tmp_path / "again").worked is False
    roles: dict[str, Any] = {"agent": f"replay/{first}", "judge": {"model": f"replay/{first}", "temperature": 0.8}}
    other = run(**SMALL, roles=roles, out=tmp_path / "other")
    assert other.summary.failures == {"replay_diverged": other.failed}
    assert other.failed > 0


def test_a_replay_without_log_probabilities_is_refused(first: Path, tmp_path: Path) -> None:
    run(**SMALL, save_tokens="none", out=tmp_path / "none")
    with pytest.raises(CapabilityMissing, match="log-probabilities"):
        run(**SMALL, model=f"replay/{tmp_path / 'none'}", out=tmp_path / "out")
