"""Holding a grid: one budget for all cells, stopping and going on, shared replies, exit codes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml
from openai_server import simulated_server
from planted_records import Command
from small_runs import stable_rows

from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.sealed_yaml import seal_yaml
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.summary import summarise
from moot.deploy.runs.dry_run import plan
from moot.deploy.runs.interruption import run_in_thread
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.prepare import Prepared, prepare
from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session import Session
from moot.deploy.studies.ablation.grid import parse_axes
from moot.deploy.studies.ablation.prepare import prepare_grid
from moot.deploy.studies.ablation.run_grid import CellRun, run_grid

OVER = ["--over", "gate.tau_d=0.2,off", "--over", "agents=2,3"]
CELLS = [f"gate.tau_d={tau},agents={agents}" for tau in ("0.2", "off") for agents in (2, 3)]
WHOLE = [*OVER, "--limit", "4", "--seed", "2", "--baseline", "gate.tau_d=off"]

CASES, TWO = 16, ("agents=2", "agents=3")
"""Of a grid that is stopped."""


@pytest.fixture
def ablate(command: Command) -> Command:
    """Runs the command in this process."""
    return lambda *arguments: command("ablate", "--engine", "inline", "--out", "out", *arguments)


def paid(cell: str) -> int:
    return summarise(f"out/{cell}").tokens_paid or 0


def test_schedules_of_evince_cool_as_in_figure_7_4(ablate: Command) -> None:
    """The exponential one faster than the linear one, and sides come together the sooner the lower the level."""
    over = ["--over", "schedule=fixed,linear,exponential", "--limit", "5"]
    plain = [
        part for each in ("gate=off", "crit_turns=none", "follow_ups=never", "retrieve=0") for part in ("--set", each)
    ]
    code, out, _ = ablate(
        "--task", "sample-symptoms", "--protocol", "evince", *over, *plain, "--quiet", "--format", "json"
    )
    assert code == 0
    cells = json.loads(out)["cells"]
    words = [cell["debates"]["agreement_words"]["mean"] for cell in cells]
    assert words[0] < words[1] < words[2]
    first = [_rounds(cell["run"], "round/1") for cell in cells]
    assert [{round(each["kappa"], 3) for each in rounds} for rounds in first] == [{0.9}, {0.633}, {0.433}]
    apart = [fmean(each["jsd"] for each in rounds) for rounds in first]
    assert apart[0] > apart[1] > apart[2]


def _rounds(run: str, path: str) -> list[dict[str, Any]]:
    rows = read_table(run, "events", ["kind", "path", "data"]).to_pylist()
    return [json.loads(row["data"]) for row in rows if (row["kind"], row["path"]) == ("round", path)]


def test_each_cell_is_the_run_that_the_command_line_would_make(ablate: Command) -> None:
    code, out, err = ablate(*WHOLE)
    assert code == 0
    assert "cell 4 of 4, gate.tau_d=off,agents=3:" in err
    assert "simulated models: these figures show" in " ".join(out.split())
    assert "moot show out/gate.tau_d=off,agents=2  the baseline" in out
    for cell, settings, agents in ((CELLS[0], {"gate.tau_d": 0.2}, 2), (CELLS[3], {"gate.tau_d": False}, 3)):
        alone = run(set=settings, agents=agents, limit=4, seed=2, engine="inline", out=f"alone/{cell}")
        for table in ("verdicts", "turns", "judgments"):
            assert stable_rows(alone.path, table) == stable_rows(Path("out") / cell, table)
    before = {path: path.stat().st_mtime_ns for path in Path("out").glob("*/**/*")}
    code, again, err = ablate(*WHOLE)
    assert (code, again) == (0, out)
    assert err.count("nothing to do") == 4
    assert {path: path.stat().st_mtime_ns for path in Path("out").glob("*/**/*")} == before
    found = json.loads(ablate(*OVER, "--limit", "4", "--seed", "2", "-q", "--format", "json")[1])
    assert [each["cell"] for each in found["cells"]] == CELLS
    assert found["baseline"] == CELLS[0]
    assert len(found["main_effects"]) == 4
    code, _, err = ablate(*OVER, "--limit", "4", "--seed", "3")
    assert (code, err.count("\n")) == (2, 1)
    assert f"cell {CELLS[0]}: out/{CELLS[0]} contains a run with a different configuration: seed: was 2, now 3" in err


def test_a_dry_run_counts_and_writes_nothing(ablate: Command) -> None:
    code, out, _ = ablate(*OVER, "--limit", "4", "--dry-run", "--share-replies")
    assert code == 0
    rows = {line.split("  ")[0]: line.split() for line in out.splitlines()}
    assert [rows[cell][1] for cell in CELLS] == ["4"] * 4
    calls = [int(rows[cell][4].replace(",", "")) for cell in CELLS]
    assert rows["all 4 cells"][3] == "16"
    assert rows["all 4 cells"][6] == f"{sum(calls):,}"
    alone = plan(prepare(RunConfig(protocol="selene", limit=4, agents=2, engine="inline", set={"gate.tau_d": 0.2})))
    assert rows[CELLS[0]][-2:] == [f"{alone.least_tokens:,}", f"{alone.most_tokens:,}"]
    assert rows["all 4 cells"][-2] == f"{sum(int(rows[cell][-2].replace(',', '')) for cell in CELLS):,}"
    assert "tokens, at least  at most about" in out
    assert "dry run: no requests, no cost, nothing written" in out
    assert not list(Path.cwd().iterdir())


def test_without_gold_labels_it_warns_beforehand_and_counts_answers(ablate: Command) -> None:
    Path("s.csv").write_text("subject\nShould we?\nMust we?\n")
    arguments = ("--task", "subjects:s.csv", "--protocol", "single-agent", "--over", "seed=1,2")
    _, _, err = ablate(*arguments, "--dry-run")
    assert err.count("warning: no case has a gold label") == 1
    code, out, err = ablate(*arguments, "--quiet", "--format", "md")
    assert (code, "warning: no case has a gold label" in err) == (0, True)
    answers = Counter(read_table(Path("out/seed=1"), "verdicts")["answer"].to_pylist())
    (row,) = [line for line in out.splitlines() if line.startswith("| 1 |")]
    told = row.split("|")[-2].strip().split(", ")
    assert sorted(told) == sorted(f"{answer} {n}" for answer, n in answers.items())
    _, out, err = ablate("--over", "seed=1,2", "--limit", "2", "--quiet", "--format", "md", "--out", "labelled")
    assert ("gold" in err, "answers" in out) == (False, False)


def test_a_budget_applies_to_the_whole_grid_and_all_its_sessions(ablate: Command) -> None:
    grid, cells = ["--over", "seed=1,2,3", "--limit", "3", "--max-open", "2"], [f"seed={seed}" for seed in (1, 2, 3)]
    assert ablate(*grid, "-q")[0] == 0
    used = [paid(cell) for cell in cells]
    Path("out").rename("whole")
    cap = used[0] + used[1] // 2
    code, out, err = ablate(*grid, "--max-tokens", str(cap))
    assert code == 4
    assert re.search(rf"stopped: --max-tokens {cap} for the whole grid does not allow .* the next may take [\d,]+", err)
    assert f"not started: {cells[2]}" in out
    assert paid(cells[0]) == used[0]
    assert sum(paid(cell) for cell in cells[:2]) <= cap
    code, _, err = ablate(*grid, "--max-tokens", str(cap))
    assert code == 4
    assert sum(paid(cell) for cell in cells[:2]) <= cap, "what earlier sessions used counts"
    code, _, err = ablate(*grid, "--max-tokens", str(sum(paid(cell) for cell in cells[:2])))
    assert (code, "for the whole grid does not allow another call" in err) == (4, True)
    assert ablate(*grid, "-q")[0] == 0
    assert [paid(cell) for cell in cells] == used
    for cell in cells:
        assert stable_rows(Path("out") / cell, "turns") == stable_rows(Path("whole") / cell, "turns")


def test_money_is_one_budget_too(tmp_path: Path) -> None:
    with simulated_server(None) as port:
        model = f"http://127.0.0.1:{port}/v1#simulated"
        prices = tmp_path / "prices.yaml"
        prices.write_text(yaml.safe_dump({"models": {model: {"input": 1.0, "output": 4.0}}}))
        fields = {"model": model, "prices": str(prices), "engine": "inline", "limit": 4, "max_open": 2}

        def held(out: str, **more: Any) -> tuple[list[CellRun], list[float]]:
            config = RunConfig.build({**fields, "out": str(tmp_path / out), **more})
            cells = list(run_grid(prepare_grid(config, parse_axes(["agents=2,3"])), _run))
            return cells, [each.run.summary.cost_usd or 0.0 for each in cells if each.run]

        _, costs = held("whole")
        assert min(costs) > 0.0
        stopped, spent = held("out", max_cost_usd=costs[0] + costs[1] / 2)
        assert [each.run.status for each in stopped if each.run] == ["finished", "stopped"]
        assert stopped[1].stopped_by.startswith("--max-cost ")
        assert spent[0] < sum(spent) <= costs[0] + costs[1] / 2
        none_left, _ = held("out", max_cost_usd=sum(spent))
        assert "for the whole grid does not allow another call" in none_left[1].stopped_by


def _run(prepared: Prepared) -> Run:
    return run_in_thread(Session(prepared))


def test_minutes_are_counted_over_the_cells(tmp_path: Path) -> None:
    now = iter([0.0, 30.0, 61.0])
    config = RunConfig.build({"engine": "inline", "limit": 1, "max_minutes": 1.0, "out": str(tmp_path / "out")})
    grid = prepare_grid(config, parse_axes(["agents=2,3"]))
    given: list[float | None] = []

    def hold(prepared: Prepared) -> Run:
        given.append(prepared.config.max_minutes)
        return _run(prepared)

    held = list(run_grid(grid, hold, clock=lambda: next(now)))
    assert given == [0.5]
    assert [each.stopped_by for each in held] == ["", "--max-minutes 1 is over"]
    assert held[1].run is None


def test_what_a_killed_cell_had_reserved_counts_as_spent(tmp_path: Path) -> None:
    base = RunConfig.build({"engine": "inline", "limit": 2, "out": str(tmp_path / "out"), "max_tokens": 10_000})
    grid = prepare_grid(base, parse_axes(["agents=2,3"]))
    first = _run(grid[0].prepared)
    limits, folder = first.path / "limits.json", RunFolder(first.path)
    content = read_run_yaml(folder)
    content["sessions"][-1]["status"] = "running"
    folder.put("run.yaml", seal_yaml(content))
    page = json.loads(limits.read_text().splitlines()[0])
    page["at_most"]["tokens"] = 9_999.0
    limits.write_text(json.dumps(page))
    held = list(run_grid(grid, lambda prepared: pytest.fail(f"{prepared.config.max_tokens} tokens are left over")
                          if prepared.config.max_tokens != 1 else _run(prepared)))  # fmt: skip
    assert [each.run.status for each in held if each.run] == ["finished", "stopped"]


def test_failed_cases_are_reported_and_counted(ablate: Command) -> None:
    with simulated_server(None, fail_rate=0.0, latency_ms=150.0) as port:
        model = f"http://127.0.0.1:{port}/v1#simulated"
        more = ["--limit", "2", "--model", model, "--debate-timeout", "0.2", "--format", "json"]
        code, out, err = ablate("--over", "gate.when=never,always", "--set", "judging.method=none", *more)
    found = json.loads(out)
    assert code == 3, "a debate takes two replies of 150 ms, one after the other"
    assert [(each["failed"], each["accuracy"]) for each in found["cells"]][1] == (2, None)
    assert found["cells"][1]["vs_baseline"]["left_out"] == {"failed": 2}
    assert "2 cases failed" in err


def test_later_cells_take_the_first_cells_replies(ablate: Command) -> None:
    more = [*OVER, "--limit", "4", "--seed", "2"]
    alone = json.loads(ablate(*more, "-q", "--format", "json")[1])["cells"]
    Path("out").rename("alone")
    code, out, _ = ablate(*more, "--share-replies")
    assert code == 0
    assert "cells share replies" in out
    found = json.loads(ablate(*more, "--share-replies", "--format", "json")[1])
    assert found["shared_replies"]
    assert [each["tokens_per_case"] for each in found["cells"]] == [each["tokens_per_case"] for each in alone]
    assert [each["replies_reused"] > 0 for each in found["cells"]] == [False, True, True, True]
    openings = read_table("out/" + CELLS[2], "turns", ["path", "reused_from"]).to_pylist()
    assert all(row["reused_from"] for row in openings if row["path"].startswith("opening/"))
    code, _, err = ablate(*more)
    assert (code, "give --share-replies again" in err) == (2, True)


@pytest.mark.slow
def test_a_killed_grid_resumes_with_the_same_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-m", "moot", "ablate", "--engine", "inline", "--max-open", "4", "--limit", str(CASES)]
    held = [set[str]()] * 2
    with simulated_server(None, latency_ms=100.0) as port:
        command += ["--out", "out", "--over", "agents=2,3", "--model", f"http://127.0.0.1:{port}/v1#simulated"]
        for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL), (None, 0)):
            process, done = subprocess.Popen(command, **streams), len(ended_of("agents=3"))
            deadline = time.monotonic() + 45.0
            while number and len(ended_of("agents=3")) <= done and time.monotonic() < deadline:
                time.sleep(0.05)
            if number:
                process.send_signal(number)
            out, err = process.communicate(timeout=120)
            assert process.returncode == code, err
            assert ("run the same command to resume" in err) == (number == signal.SIGINT)
            paid = [{row["reply_id"] for row in read_table(f"out/{cell}", "turns").to_pylist()} for cell in TWO]
            assert held[1] <= paid[1]
            assert held[0] in (set(), paid[0]), "the first cell is not held again"
            held = paid
            assert (len(ended_of("agents=3")) == CASES) == (number is None)
    assert "against agents=2" in " ".join(out.split())
    assert len(yaml.safe_load(Path("out/agents=2/run.yaml").read_text())["sessions"]) == 1
    assert len(set(ended_of("agents=3"))) == CASES


def ended_of(cell: str) -> list[str]:
    """The cases that have a verdict."""
    folder = Path("out", cell)
    if not (folder / "run.yaml").exists():
        return []
    ids: list[str] = read_table(folder, "verdicts")["case_id"].to_pylist()
    return ids
