"""Grids from Python: values by key, cases as objects, inside an event loop; the figures are the command's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planted_records import Command

import moot
from moot.deploy.studies.ablation.grid import baseline_of, cells_of, make_axes, parse_axes

CASES = [{"id": f"c{n}", "question": f"Is {n} even?", "labels": ["Yes", "No"], "gold": "Yes"} for n in range(3)]


@pytest.mark.parametrize(
    ("over", "flags"),
    [
        ({"gate.tau_d": [0.2, 0.35], "agents": (2, 3)}, ["gate.tau_d=0.2,0.35", "agents=2,3"]),
        ({"gate.when": ["always", "never"]}, ["gate.when=always,never"]),
        ({"role.judge": ["small", ["small", "simulated"]]}, ["role.judge=small,[small,simulated]"]),
        (["agents=2,3"], ["agents=2,3"]),
    ],
)
def test_values_make_the_cells_that_flags_make(over: Any, flags: list[str]) -> None:
    assert cells_of(make_axes(over)) == cells_of(parse_axes(flags))


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({}, "nothing varies"),
        ({"agents": 2}, "expected a list of values"),
        ({"agents": "2,3"}, "expected a list of values"),
        ({"agents": [2]}, "one value is no comparison"),
        ({"agents": []}, "one value is no comparison"),
        ({"agents": [2, 2]}, "given twice"),
    ],
)
def test_values_that_are_no_comparison_are_refused(over: Any, said: str) -> None:
    with pytest.raises(moot.ConfigError, match=said):
        make_axes(over)


def test_a_string_stays_one_and_the_baseline_is_a_value() -> None:
    axes = make_axes({"gate.tau_d": [False, 0.2], "model": ["a,b", "c"]})
    assert [value.value for axis in axes for value in axis.values] == [False, 0.2, "a,b", "c"]
    assert baseline_of(axes, {"model": "c", "gate.tau_d": 0.2}).name == "gate.tau_d=0.2,model=c"
    with pytest.raises(moot.ConfigError, match="the grid has no such value"):
        baseline_of(axes, {"gate.tau_d": 0})


async def test_cases_are_ablated_inside_an_event_loop(tmp_path: Any) -> None:
    given: Any = {"task": CASES, "engine": "inline", "out": tmp_path / "grid"}
    found = moot.ablate(over={"agents": [2, 3]}, baseline={"agents": 3}, **given)
    assert [(each.cell, each.cases) for each in found.cells] == [("agents=2", 3), ("agents=3", 3)]
    assert (found.baseline, found.warnings[0].startswith("only 3 cases")) == ("agents=3", True)
    assert "accuracy against agents=3" in " ".join(str(found).split())
    assert repr(found) == f"<Ablation {tmp_path}/grid: 2 cells>"
    paid = moot.open_run(tmp_path / "grid" / "agents=2").summary.tokens_paid
    more = moot.ablate(over={"agents": [2, 3, 4]}, baseline={"agents": 3}, **given)
    assert [each.tokens_per_case for each in more.cells[:2]] == [each.tokens_per_case for each in found.cells]
    assert moot.open_run(tmp_path / "grid" / "agents=2").summary.tokens_paid == paid


def test_the_command_and_the_call_give_the_same(command: Command) -> None:
    given = ("--engine", "inline", "--limit", "3", "--out", "grid", "--format", "json")
    code, out, _ = command("ablate", "--over", "agents=2,3", *given)
    found = moot.ablate(over={"agents": [2, 3]}, engine="inline", limit=3, out="grid")
    assert (code, json.loads(out)) == (0, json.loads(found.model_dump_json()))


def test_a_used_up_budget_is_reported(tmp_path: Any) -> None:
    found = moot.ablate(
        over={"agents": [2, 3]},
        task=CASES,
        engine="inline",
        out=tmp_path / "grid",
        max_tokens=2_000,
    )
    assert "stopped: --max-tokens 2000 for the whole grid" in str(found)


def test_a_protocol_object_is_refused(tmp_path: Any) -> None:
    with pytest.raises(moot.ConfigError, match="name it as module:Class"):
        moot.ablate(over={"agents": [2, 3]}, protocol=object(), out=tmp_path / "grid")
    assert not (tmp_path / "grid").exists()
