"""Cells with equal effective settings share one run, which is executed, compared and counted once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from not_none import not_none
from planted_records import Command, GridOf, Printed

from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.studies.ablation.grid import parse_axes
from moot.deploy.studies.ablation.prepare import cells_to_run, prepare_grid
from moot.deploy.studies.ablation.report import Ablation, next_cells, show_ablation

pytestmark = pytest.mark.slow

PROTOCOL = "effective_gate:EffectiveGate"
BASE: dict[str, Any] = {"task": "sample-symptoms", "protocol": PROTOCOL, "engine": "inline", "limit": 2, "out": "out"}
OVER = ["schedule=ensemble,none,fixed,linear,exponential,adaptive", "gate=on,off"]
HELD, SERVED = "schedule=ensemble,gate=on", "schedule=ensemble,gate=off"


def served(over: list[str], **more: Any) -> dict[str, str]:
    """By cell, whose run serves it."""
    grid = prepare_grid(RunConfig.build({**BASE, **more}), parse_axes(over))
    return {each.cell.name: each.same_as for each in grid if each.same_as}


def test_the_whole_grid_has_a_run_without_a_gate_once(command: Command) -> None:
    shared = ["--task", "sample-symptoms", "--protocol", PROTOCOL, "--engine", "inline", "--limit", "2", "--out", "out"]
    over = [part for each in OVER for part in ("--over", each)]

    def ablate(*arguments: str) -> tuple[str, str]:
        code, out, err = command("ablate", *shared, *over, *arguments)
        assert code == 0
        return out, err

    out, _ = ablate("--dry-run")
    lines = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert lines[SERVED] == ["as", HELD]
    assert out.splitlines()[13].split()[:4] == ["all", "12", "cells", "22"], "11 runs of 2 cases"
    out, err = ablate()
    assert f"cell {SERVED} is skipped: its settings equal those of {HELD}" in err
    assert "cell 11 of 11, schedule=adaptive,gate=off:" in err
    assert not Path("out", SERVED).exists()
    assert len([*Path("out").glob("*/run.yaml")]) == 11
    assert f"ensemble off as {HELD}" in " ".join(out.split())
    assert "BH: adjusted for 10 comparisons" in " ".join(out.split())
    found = json.loads(ablate("--quiet", "--format", "json")[0])
    cells = {each["cell"]: each for each in found["cells"]}
    assert len(cells) == 12
    assert [each["same_as"] for each in cells.values()] == [None, HELD, *[None] * 10]
    assert cells[SERVED]["accuracy"] == cells[HELD]["accuracy"]
    assert cells[SERVED]["values"] == {"schedule": "ensemble", "gate": "off"}
    assert cells[SERVED]["vs_baseline"] is None
    ensemble = found["main_effects"][0]
    assert (ensemble["value"], ensemble["tokens_per_case"]) == ("ensemble", cells[HELD]["tokens_per_case"])


def test_a_started_run_resumes_whatever_the_order_of_the_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert served(["schedule=ensemble,none", "gate=on,off"]) == {SERVED: HELD}
    run(**BASE | {"out": f"out/{SERVED}"}, set={"schedule": "ensemble", "gate": False})
    assert served(["schedule=ensemble,none", "gate=on,off"]) == {HELD: SERVED}


def test_only_settings_that_a_protocol_names_are_without_effect() -> None:
    assert served(["schedule=fixed,none", "gate=on,off"]) == {}
    assert served(["gate.when=never,always", "gate.tau_d=0.2,0.3"], protocol="selene") == {}


def test_later_cells_share_the_replies_of_the_first_cell_run() -> None:
    grid = prepare_grid(
        RunConfig.build(BASE), parse_axes(["schedule=ensemble,none", "gate=on,off"]), share_replies=True
    )
    first, *others = cells_to_run(grid)
    assert (first.prepared.reuse, {each.prepared.reuse for each in others}) == (None, {first.prepared.folder})


@pytest.fixture
def three_runs(grid_of: GridOf) -> Callable[..., Ablation]:
    """k=x,y m=1,2 where m makes no difference to x."""
    grid = grid_of("k=x,y", "m=1,2")
    for number, right, tokens in ((0, "ab", 10), (2, "abc", 30), (3, "abcd", 50)):
        session = grid.session.new()
        for case_id in "abcd":
            session.case(case_id)
            session.reply(case_id, "opening/agent/0", tokens)
            session.verdict(case_id, "Yes" if case_id in right else "No", "single", distribution={"Yes": 1.0})
        grid.plant(number, session)
    same = {grid.cells[1].name: grid.cells[0].name}
    return lambda *baseline: grid.measured(*baseline, same_as=same)


def test_a_run_that_serves_two_cells_is_compared_and_counted_once(three_runs: Callable[..., Ablation]) -> None:
    found = three_runs()
    assert [each.same_as for each in found.cells] == [None, "k=x,m=1", None, None]
    p = [not_none(each.vs_baseline.accuracy.p_value) for each in found.cells if each.vs_baseline]
    assert len(p) == 2
    assert not_none(found.cells[3].vs_baseline).p_adjusted == pytest.approx(min(1.0, 2 * min(p)))
    effects = {(each.key, each.value): each for each in found.main_effects}
    assert {key: (each.accuracy, each.tokens_per_case) for key, each in effects.items()} == {
        ("k", "x"): (0.5, 10.0), ("k", "y"): (0.875, 40.0), ("m", "1"): (0.625, 20.0), ("m", "2"): (0.75, 30.0)
    }  # fmt: skip
    assert [not_none(each.brier).vs_baseline is None for each in found.cells] == [True, True, False, False]
    first, second = found.cells[:2]
    assert (second.accuracy, second.tokens_per_case, second.run) == (first.accuracy, first.tokens_per_case, first.run)
    assert second.cost_usd == 0.0, "nothing was paid for it"


def test_a_baseline_that_another_run_serves_is_that_run(three_runs: Callable[..., Ablation], printed: Printed) -> None:
    found = three_runs("m=2")
    assert found.baseline == "k=x,m=1"
    assert [each.vs_baseline is None for each in found.cells] == [True, True, False, False]
    assert next_cells(found) == [("k=x,m=1", "the baseline"), ("k=y,m=2", "the most accurate of the others")]
    effects = {(each.key, each.value): each.difference for each in found.main_effects}
    assert effects["m", "2"] is None
    assert effects["m", "1"] == pytest.approx(-0.125)
    assert "x 2 as k=x,m=1" in " ".join(printed(show_ablation, found, width=80).split())
    assert "| x | 2 | as k=x,m=1 |" in printed(show_ablation, found, "md")
