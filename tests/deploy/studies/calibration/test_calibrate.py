"""Calibration against a plain recomputation from the record, one case at a time."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from gated_cases import add_case, gate
from not_none import not_none
from planted_records import InlineRun, PlantedSession, Printed

from moot.actors.record.tables import read_table
from moot.deploy.results.record import read_events, read_replies
from moot.deploy.results.stats import compare_paired
from moot.deploy.studies.calibration.branches import read_both_branches
from moot.deploy.studies.calibration.gate import (
    GateCalibration,
    GridPoint,
    best_by_skip_rate,
    calibrate,
    cheapest_within,
    evaluate_point,
    skip_mask,
    sweep_grid,
    threshold_axes,
)
from moot.deploy.studies.calibration.report import show_calibration
from moot.metrics.detection import auroc
from moot.metrics.significance import wilson_interval
from moot.protocols.case import Reference
from moot.protocols.errors import ConfigError
from moot.protocols.registry import make_protocol
from moot.protocols.selene.gate import GateSignals, decide
from moot.protocols.selene.settings import GateSettings, SeleneSettings


def add_twelve(session: PlantedSession, skipped: str = "Yes", **signals: Any) -> PlantedSession:
    """Twelve cases with equal signals, right if they are debated; and the session."""
    for i in range(12):
        add_case(session, i, skipped, "Yes", gate(**signals))
    return session


@pytest.fixture
def planted_run(session: PlantedSession) -> Path:
    """40 cases: skipping is wrong where D is 0.3; debating is always right."""
    for i in range(40):
        high = i % 4 == 0
        add_case(session, i, "No" if high else "Yes", "Yes", gate(d=0.3 if high else 0.1))
    return session.plant(encoder="enc-1", task="t", protocol="selene", simulated=False)


def test_the_cheapest_setting_that_keeps_the_accuracy(planted_run: Path) -> None:
    found = calibrate(planted_run)
    assert found.n_validation + found.n_held_out == 40
    assert found.debate_accuracy.value == 1.0
    assert 0.1 < (found.chosen.tau_d or 0) <= 0.3
    assert found.chosen.accuracy == found.held_out.point.accuracy == 1.0
    point = found.held_out.point
    skipped = point.skip_rate
    assert point.cost_vs_debate == pytest.approx((skipped * 25 + (1 - skipped) * 100) / 100)
    assert point.cost_vs_single == pytest.approx((skipped * 25 + (1 - skipped) * 100) / 10)
    by_name = {each.name: each for each in found.predictors}
    assert (by_name["d"].auroc, by_name["d"].n, by_name["d"].errors) == (1.0, 40, 10)
    assert by_name["c"].auroc == 0.5
    assert not_none(found.as_run).point.skip_rate == 1.0
    assert found.set_line.startswith("--set gate.tau_d=0.3 --set gate.tau_m=")
    assert found.set_line.endswith("--set gate.tau_d_encoder=enc-1")
    assert any("held-out cases" in warning for warning in found.warnings)


def test_every_figure_again_the_slow_way(inline_run: InlineRun) -> None:
    run = inline_run("selene", both_branches=True)
    found = calibrate(run, holdout=0.4, seed=3, tolerance=0.02)
    slow = _slow(run)
    cases = read_both_branches(run, "")
    assert sorted(cases.case_ids) == sorted(slow)
    held_mask = cases.held_out(0.4, 3)
    held = [case for case, out in zip(cases.case_ids, held_mask, strict=True) if out]
    rest = [case for case, out in zip(cases.case_ids, held_mask, strict=True) if not out]
    assert (found.n_held_out, found.n_validation) == (len(held), len(rest))
    for point in [*found.grid[::97], found.chosen]:
        _assert_point(point, [slow[case] for case in rest])
    _assert_point(found.held_out.point, [slow[case] for case in held])
    assert found.as_run is not None
    _assert_point(found.as_run.point, [slow[case] for case in held])
    assert (found.as_run.point.tau_d, found.as_run.point.tau_m, found.as_run.point.tau_p) == (0.35, 0.25, 0.6)

    taus = (found.chosen.tau_d, found.chosen.tau_m, found.chosen.tau_p)
    right = [slow[c]["skip_right"] if _skips(slow[c], taus) else slow[c]["debate_right"] for c in held]
    ends = wilson_interval(sum(right), len(right))
    assert found.held_out.accuracy_interval == (ends.low, ends.high)
    assert found.held_out.vs_debate == compare_paired(right, [slow[c]["debate_right"] for c in held])
    wrong = [not row["skip_right"] for row in slow.values()]
    for each in found.predictors:
        sign = -1 if each.name in "pc" else 1
        expected = auroc([sign * row[each.name] for row in slow.values()], wrong)
        assert each.auroc == pytest.approx(expected)
        assert (each.n, each.errors) == (len(slow), sum(wrong))
    allowed = [p for p in found.grid if p.accuracy >= found.debate_accuracy_validation - 0.02 - 1e-9]
    assert found.chosen.cost_vs_debate == pytest.approx(min(p.cost_vs_debate or math.inf for p in allowed))


def _slow(run: Path) -> dict[str, dict[str, Any]]:
    gold = {row["case_id"]: row["gold"] for row in read_table(run, "cases").to_pylist()}
    rows: dict[str, dict[str, Any]] = {}
    for event in read_events(run, ["gate", "branches"]):
        row = rows.setdefault(event.case_id, {"open": 0, "skip": 0, "debate": 0, "single": 0})
        if event.kind == "gate":
            row |= {name: event.data[name] for name in ("d", "m", "p", "c", "equal")}
        else:
            row["skip_right"] = event.data["skipped_answer"] == gold[event.case_id]
            row["debate_right"] = event.data["debated_answer"] == gold[event.case_id]
    for reply in read_replies(run):
        row = rows[reply.case_id]
        first = reply.path.split("/")[0]
        kind = "skip" if reply.path.startswith("judge/consensus") else "open" if first == "opening" else "debate"
        row[kind] += reply.tokens or 0
        row["single"] += (reply.tokens or 0) if reply.path == "opening/agent/0" else 0
    return rows


def _skips(row: dict[str, Any], taus: tuple[Any, Any, Any]) -> bool:
    signals = GateSignals(row["d"], row["m"], row["p"], row["c"], row["equal"])
    return decide(signals, GateSettings(tau_d=taus[0], tau_m=taus[1], tau_p=taus[2])).skip


def _assert_point(point: GridPoint, rows: list[dict[str, Any]]) -> None:
    skipped = [_skips(row, (point.tau_d, point.tau_m, point.tau_p)) for row in rows]
    right = [row["skip_right"] if s else row["debate_right"] for row, s in zip(rows, skipped, strict=True)]
    right_skipped = [row["skip_right"] for row, s in zip(rows, skipped, strict=True) if s]
    tokens = sum(r["open"] + (r["skip"] if s else r["debate"]) for r, s in zip(rows, skipped, strict=True))
    assert point.n_skipped == sum(skipped)
    assert point.skip_rate == pytest.approx(np.mean(skipped))
    assert point.accuracy == pytest.approx(np.mean(right))
    assert point.accuracy_skipped == (pytest.approx(np.mean(right_skipped)) if right_skipped else None)
    assert point.cost_vs_debate == pytest.approx(tokens / sum(r["open"] + r["debate"] for r in rows))
    assert point.cost_vs_single == pytest.approx(tokens / sum(r["single"] for r in rows))


def test_the_grid_follows_the_gate(session: PlantedSession) -> None:
    places = list(itertools.product([None, 0.1, 0.35], [None, 0.1, 0.25], [None, 0.6, 0.59], [True, False]))
    for i, (d, m, p, unanimous) in enumerate(places):
        add_case(session, 100 + i, "Yes", "Yes", gate(d, m, p, unanimous=unanimous))
    cases = read_both_branches(session.plant(), "")
    assert cases.case_ids == tuple(f"c{100 + i}" for i in range(len(places)))
    for taus in ((0.35, 0.25, 0.6), (None, None, None), (0.2, None, 0.6), (0.35, 0.05, None)):
        settings = GateSettings(tau_d=taus[0], tau_m=taus[1], tau_p=taus[2])
        expected = [decide(GateSignals(d, m, p, 0.8, unanimous), settings).skip for d, m, p, unanimous in places]
        assert skip_mask(cases, *taus).tolist() == expected, taus


def test_a_case_with_a_failed_opening_may_not_be_skipped(session: PlantedSession) -> None:
    """Of a record from before `complete` nothing is known of it, and its `unanimous` was of the valid answers."""
    of_two = {"unanimous": False, "equal": True, "complete": False}
    told = [{}, of_two | {"require_complete": True}, of_two | {"require_complete": False}]
    for i, data in enumerate(told):
        add_case(session, 100 + i, "Yes", "Yes", gate(**data))
    assert read_both_branches(session.plant(), "").may_skip.tolist() == [True, False, True]


def test_unknown_signals_turn_their_tests_off(session: PlantedSession) -> None:
    add_twelve(session, m=None, p=None)
    found = calibrate(session.plant(encoder="e"))
    assert (found.chosen.tau_m, found.chosen.tau_p) == (None, None)
    assert "--set gate.tau_m=none --set gate.tau_p=none" in found.set_line
    assert [each.auroc for each in found.predictors] == [None] * 4, "nothing is ever wrong"
    assert [each.n for each in found.predictors] == [12, 0, 0, 12]


@pytest.mark.parametrize(("setting", "skipped"), [("debate", 11), ("ignore", 12)])
def test_a_case_without_a_test_is_skipped_where_the_run_ignored_it(
    session: PlantedSession, setting: str, skipped: int
) -> None:
    for i in range(11):
        add_case(session, i, "Yes", "Yes", gate())
    add_case(session, 11, "Yes", "Yes", gate(m=None, untested=["misalignment"], if_untested=setting))
    cases = read_both_branches(session.plant(encoder="e"), "")
    assert skip_mask(cases, 0.35, 0.25, 0.6).sum() == skipped


def test_log_probabilities_of_two_kinds_are_not_pooled(session: PlantedSession) -> None:
    for i in range(12):
        add_case(session, i, "Yes" if i % 2 else "No", "Yes", gate(p=0.5 + i / 100))
    session.replies[0]["logprob_stage"] = "after"
    found = calibrate(session.plant(encoder="e"))
    assert any("not pooled" in warning for warning in found.warnings)
    assert {each.name: each.n for each in found.predictors} == {"d": 12, "m": 0, "p": 0, "c": 12}


def test_unknown_usage_makes_no_cost(session: PlantedSession) -> None:
    add_twelve(session)
    for reply in session.replies:
        reply["prompt_tokens"] = None
    found = calibrate(session.plant(encoder="e"))
    assert (found.chosen.cost_vs_debate, found.chosen.cost_vs_single) == (None, None)
    assert found.chosen.skip_rate == 1.0
    assert any("usage" in warning for warning in found.warnings)


def test_what_cannot_be_used_is_counted(session: PlantedSession) -> None:
    add_twelve(session)
    add_case(session, 20, "Yes", "Yes", gate(), gold=None)
    session.case("bad")
    session.verdict("bad", None, "failed", failure="quorum_failed")
    assert calibrate(session.plant(encoder="e")).left_out == {"cannot be scored": 1, "failed": 1}


def test_answers_are_scored_as_the_record_scored_them(session: PlantedSession) -> None:
    """By label `$1200` and `1,200` would differ, and every case would be wrong either way."""
    for i in range(12):
        add_case(session, i, "1300" if i % 2 else "$1200", "1200.", gate(), gold="1,200")
        session.cases[-1] = msgspec.structs.replace(session.cases[-1], reference=Reference(scoring="number"))
    folder = session.plant(encoder="e")
    found = read_both_branches(folder, "moot run")
    assert [bool(right) for right in found.skip_right] == [i % 2 == 0 for i in sorted(range(12), key=str)]
    assert found.debate_right.all()


def test_a_gate_that_never_skips_is_reported(session: PlantedSession) -> None:
    add_twelve(session, "No")
    found = calibrate(session.plant(encoder="e"))
    assert (found.chosen.tau_d, found.chosen.n_skipped) == (0.0, 0)
    assert found.chosen.accuracy_skipped is None
    assert any("always debates" in warning for warning in found.warnings)


def test_the_split_does_not_move_when_cases_come(session: PlantedSession) -> None:
    splits = []
    for i in range(30):
        add_case(session, i, "Yes", "Yes", gate())
        if i in (9, 29):
            cases = read_both_branches(session.plant(), "")
            splits.append(dict(zip(cases.case_ids, cases.held_out(0.5, 1).tolist(), strict=True)))
    before, after = splits
    assert {case: after[case] for case in before} == before
    assert list(after.values()) != cases.held_out(0.5, 2).tolist()


def test_the_split_keeps_groups_together(session: PlantedSession, printed: Printed) -> None:
    for i in range(60):
        add_case(session, i, "Yes" if i % 3 else "No", "Yes", gate())
        case = msgspec.structs.replace(session.cases[-1].case, question=f"Is {i % 30} it?")
        session.cases[-1] = msgspec.structs.replace(session.cases[-1], case=case)
    folder = session.plant(encoder="e")
    cases, found = read_both_branches(folder, ""), calibrate(folder)
    held = dict(zip(cases.groups, cases.held_out(found.holdout, found.seed).tolist(), strict=True))
    assert len(held) == 30
    assert [held[group] for group in cases.groups] == cases.held_out(found.holdout, found.seed).tolist()
    assert (found.held_out.vs_debate.groups, found.held_out.vs_debate.n) == (found.n_held_out // 2, found.n_held_out)
    assert f"{found.n_held_out // 2} groups" in " ".join(printed(show_calibration, found, width=200).split())


def test_a_run_without_both_branches_is_refused(session: PlantedSession) -> None:
    session.case("c0")
    session.verdict("c0")
    with pytest.raises(ConfigError, match="use a protocol that has one, with --set both_branches=true"):
        calibrate(session.plant(task="sample", protocol="selene"))
    session.event("c0", "gate", "gate", {"skip": True})
    with pytest.raises(ConfigError, match="repeat the command of this run with --set both_branches=true"):
        calibrate(session.plant(task="sample", protocol="mine:Gated"))


@pytest.mark.parametrize("arguments", [{"holdout": 0.0}, {"holdout": 1.0}, {"tolerance": -0.1}, {"holdout": 1e-9}])
def test_wrong_arguments(planted_run: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        calibrate(planted_run, **arguments)


def test_ties_go_to_accuracy_and_then_to_the_stricter_thresholds(planted_run: Path) -> None:
    cases = read_both_branches(planted_run, "")
    everywhere = np.ones(len(cases), np.bool_)
    axes = threshold_axes(cases, everywhere)
    grid = sweep_grid(cases, everywhere, axes)
    assert len(grid) == len(axes)
    chosen = cheapest_within(grid, 1.0, 0.01)
    same = [p for p in grid if (p.n_skipped, p.accuracy) == (chosen.n_skipped, chosen.accuracy)]
    assert chosen.tau_d == min(p.tau_d for p in same if p.tau_d is not None)
    assert chosen.tau_p == max(p.tau_p for p in same if p.tau_p is not None)
    assert [p.n_skipped for p in best_by_skip_rate(grid)] == sorted({p.n_skipped for p in grid})
    assert evaluate_point(cases, everywhere, (chosen.tau_d, chosen.tau_m, chosen.tau_p)) == chosen


def test_the_printed_line_is_taken_by_the_protocol(planted_run: Path) -> None:
    words = calibrate(planted_run).set_line.split()
    settings = dict(word.split("=", 1) for word in words if word != "--set")
    read = getattr(make_protocol("selene", settings), "settings")  # noqa: B009 - not of every protocol
    assert isinstance(read, SeleneSettings)
    assert read.gate.tau_d_encoder == "enc-1"


@pytest.mark.parametrize("form", ["text", "json", "md"])
def test_all_formats(inline_run: InlineRun, printed: Printed, form: str) -> None:
    found = calibrate(inline_run("selene", both_branches=True))
    shown = printed(show_calibration, found, form=form, width=80)
    assert found.set_line in shown
    assert "simulated models" in shown
    if form == "json":
        assert GateCalibration.model_validate_json(shown) == found
    else:
        assert "higher D, more errors" in " ".join(shown.split()) or form == "text"
