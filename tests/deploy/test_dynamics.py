"""A run's debates round by round: means, each one's own change, and sides and consensus against the gold labels."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from planted_records import Printed, Session
from typer.testing import CliRunner

import moot
from moot.deploy.cli.main import app
from moot.deploy.reading.report.render import report_markdown, show_report
from moot.deploy.reading.rounds.dynamics import dynamics, dynamics_blocks


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.reading.rounds.over_cases._RESAMPLES", 400)


def _plant(session: Session, cases: int = 20) -> None:
    """Debates that begin with a JSD of 0.4 to 0.59: even ones end after round 1 at half of it, odd ones after round 2
    at a quarter. Kappa falls by 0.2 a round.
    """
    for i in range(cases):
        session.case(f"c{i:02}")
        first = 0.4 + i / 100
        for n in range(2 + i % 2):
            data = {"round": n, "kappa": 0.9 - 0.2 * n, "jsd": first / 2**n, "kl": {"agent/0>agent/1": 1.0}}
            data["crit"] = {"agent/0": 0.6 + 0.1 * n, "agent/1": 0.8 + 0.1 * n}
            session.event(f"c{i:02}", "round", f"round/{n}", data)


def test_means_are_of_the_debates_that_held_the_round(session: Session) -> None:
    _plant(session)
    found = dynamics(session.plant())
    assert [(each.round, each.cases) for each in found.rounds] == [(0, 20), (1, 20), (2, 10)]
    jsd = [each.measured["jsd"] for each in found.rounds]
    assert [each.mean for each in jsd] == pytest.approx([0.495, 0.2475, 0.125])
    assert jsd[0].low is not None
    assert jsd[0].high is not None
    assert 0.4 < jsd[0].low < 0.495 < jsd[0].high < 0.59
    assert [each.measured["crit"].mean for each in found.rounds] == pytest.approx([0.7, 0.8, 0.9])
    assert "kl" not in found.rounds[0].measured


def test_the_change_is_of_each_debates_own_rounds(session: Session) -> None:
    _plant(session)
    jsd, kappa = (dynamics(session.plant()).changes[key] for key in ("jsd", "kappa"))
    assert (jsd.first, jsd.last) == pytest.approx((0.495, (0.49 / 2 + 0.5 / 4) / 2))
    assert jsd.by_case.mean == pytest.approx(0.185 - 0.495)
    assert jsd.percent == pytest.approx(100.0 * (0.185 / 0.495 - 1.0))
    assert jsd.by_case.cases == 20
    assert kappa.by_case.mean == pytest.approx(-0.3)


def test_a_number_that_a_side_does_not_know_is_unknown_of_all(session: Session) -> None:
    session.case("c1")
    for n, other in enumerate((0.8, None, 0.6)):
        session.event("c1", "round", f"round/{n}", {"round": n, "crit": {"agent/0": 0.4, "agent/1": other}})
    found = dynamics(session.plant())
    assert [each.measured["crit"].mean for each in found.rounds] == [pytest.approx(0.6), None, pytest.approx(0.5)]
    change = found.changes["crit"]
    assert change.by_case.mean == pytest.approx(-0.1)
    assert (change.by_case.low, change.by_case.cases) == (None, 1)


def test_no_share_is_given_of_nothing(session: Session) -> None:
    session.case("c1")
    for n in (0, 1):
        session.event("c1", "round", f"round/{n}", {"round": n, "jsd": 0.1 * n})
    change = dynamics(session.plant()).changes["jsd"]
    assert (change.first, change.percent) == (0.0, None)


async def test_the_command_of_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await moot.arun(task="sample-symptoms", protocol="evince", engine="inline", out=run, limit=3)
    called = CliRunner().invoke(app, ["show", str(run), "--rounds", "--format", "json"])
    assert called.exit_code == 0
    shown = json.loads(called.stdout)
    assert shown["rounds"][0]["cases"] == 3
    assert {"kappa", "jsd", "wd", "entropy", "crit"} <= shown["changes"].keys()
    both = CliRunner().invoke(app, ["show", str(run), "--rounds", "--dial"])
    assert "--rounds is of a whole run: it does not go with --dial" in str(both.exception)


SURE, EVEN, WRONG = {"Yes": 1.0, "No": 0.0}, {"Yes": 0.5, "No": 0.5}, {"Yes": 0.0, "No": 1.0}
CLOSE, LESS = {"Yes": 0.8, "No": 0.2}, {"Yes": 0.6, "No": 0.4}


def _plant_sides(session: Session) -> None:
    """12 cases, gold Yes: agent/0 opens sure and right, in the last four sure and wrong; agent/1 opens undecided."""
    for i in range(12):
        case_id = f"c{i:02}"
        session.case(case_id)
        session.evince(case_id, [(0.9, SURE if i < 8 else WRONG, EVEN), (0.7, CLOSE, LESS)])
        payload = {"distribution_from": "consensus"}
        session.verdict(case_id, "Yes", "converged", distribution={"Yes": 0.9, "No": 0.1}, payload=payload)


def test_first_and_last_round_by_side(session: Session) -> None:
    _plant_sides(session)
    first, last = dynamics(session.plant()).truth
    opened = {each.of: each for each in first.held}
    assert list(opened) == ["agent/0", "agent/1", "mixture"]
    assert opened["agent/0"].accuracy == pytest.approx(8 / 12)
    assert (opened["agent/0"].kl, opened["agent/0"].kl_infinite) == (0.0, 4)
    assert opened["agent/0"].brier.mean == pytest.approx(2.0 * 4 / 12)
    assert opened["agent/1"].accuracy == 0.0, "a tie at the top is no answer"
    assert opened["agent/1"].kl == pytest.approx(math.log(2.0))
    assert opened["agent/1"].kl_infinite == 0
    assert opened["agent/1"].brier.mean == pytest.approx(0.5)
    assert opened["mixture"].brier.mean == pytest.approx(2.0 * 4 / 12), "the even side weighs nothing"
    assert (first.better, first.cases) == ("agent/1", 12)
    assert first.over_better["mixture"].mean == pytest.approx(2.0 * 4 / 12 - 0.5)
    assert first.beats_all["mixture"] == 0.0
    ended = {each.of: each for each in last.held}
    assert list(ended) == ["agent/0", "agent/1", "mixture", "consensus"]
    assert ended["consensus"].brier.mean == pytest.approx(0.02)
    assert ended["consensus"].kl == pytest.approx(-math.log(0.9))
    assert last.beats_all == {"mixture": 0.0, "consensus": 1.0}
    assert last.over_better["consensus"].mean == pytest.approx(0.02 - 0.08)


def test_only_cases_with_all_sides_and_a_gold_label_count(session: Session) -> None:
    _plant_sides(session)
    session.case("d1", gold=None)
    session.evince("d1", [(0.9, SURE, EVEN)])
    session.verdict("d1", "Yes", distribution=SURE, payload={"distribution_from": "consensus"})
    session.case("d0")
    alone = {"round": 0, "jsd": 0.0, "distributions": {"agent/0": SURE, "agent/1": SURE, "agent/2": SURE}}
    session.event("d0", "round", "round/0", alone)
    session.verdict("d0", "Yes", distribution=SURE, payload={"distribution_from": "consensus"})
    assert [truth.cases for truth in dynamics(session.plant()).truth] == [12, 12]


def test_a_single_side_is_held_against_the_labels_as_a_pairs_are(session: Session, printed: Printed) -> None:
    for i in range(4):
        session.case(f"c{i}")
        said = CLOSE if i else WRONG
        session.event(
            f"c{i}", "round", "round/0", {"round": 0, "distributions": {"agent/0": said}, "entropy": {"agent/0": 0.5}}
        )
        session.verdict(f"c{i}", "Yes", "alone", distribution=said, payload={"distribution_from": "consensus"})
    found = dynamics(session.plant())
    (truth,) = found.truth
    (alone,) = truth.held
    assert (alone.of, alone.accuracy, alone.kl_infinite) == ("agent/0", 0.75, 1)
    assert alone.brier.mean == pytest.approx((2.0 + 3 * 0.08) / 4)
    assert alone.kl == pytest.approx(-math.log(0.8))
    assert truth.over_better == {}


def test_debates_of_one_round_are_held_against_the_labels_once(session: Session, printed: Printed) -> None:
    session.case("c0")
    session.evince("c0", [(0.9, CLOSE, EVEN)])
    session.verdict("c0", "Yes", distribution=CLOSE, payload={"distribution_from": "consensus"})
    found = dynamics(session.plant())
    (truth,) = found.truth
    assert [each.of for each in truth.held] == ["agent/0", "agent/1", "mixture", "consensus"]
    assert "only round, consensus: Brier" in printed(show_report, found, lambda: dynamics_blocks(found), width=200)


def test_without_labels_nothing_is_said(session: Session) -> None:
    session.case("c1", gold=None)
    session.evince("c1", [(0.9, SURE, EVEN), (0.7, CLOSE, LESS)])
    found = dynamics(session.plant())
    assert found.truth == []
    assert "gold" not in report_markdown(dynamics_blocks(found))
