"""Sides, mixture and consensus against the gold labels: KL to the truth, Brier, and the better side."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.deploy.reading.report.render import report_markdown
from moot.deploy.reading.rounds.dynamics import dynamics, dynamics_blocks, show_dynamics

SURE, EVEN, WRONG = {"Yes": 1.0, "No": 0.0}, {"Yes": 0.5, "No": 0.5}, {"Yes": 0.0, "No": 1.0}
CLOSE, LESS = {"Yes": 0.8, "No": 0.2}, {"Yes": 0.6, "No": 0.4}


def _plant(session: Any) -> None:
    """12 cases, gold Yes: agent/0 opens sure and right, in the last four sure and wrong; agent/1 opens undecided."""
    for i in range(12):
        case_id = f"c{i:02}"
        session.case(case_id)
        session.evince(case_id, [(0.9, SURE if i < 8 else WRONG, EVEN), (0.7, CLOSE, LESS)])
        payload = {"distribution_from": "consensus"}
        session.verdict(case_id, "Yes", "converged", distribution={"Yes": 0.9, "No": 0.1}, payload=payload)


def test_first_and_last_round_by_side(planted: Callable[..., Path], session: Any) -> None:
    _plant(session)
    first, last = dynamics(planted(session)).truth
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


def test_only_cases_with_all_sides_and_a_gold_label_count(planted: Callable[..., Path], session: Any) -> None:
    _plant(session)
    session.case("d1", gold=None)
    session.evince("d1", [(0.9, SURE, EVEN)])
    session.verdict("d1", "Yes", distribution=SURE, payload={"distribution_from": "consensus"})
    session.case("d0")
    alone = {"round": 0, "jsd": 0.0, "distributions": {"agent/0": SURE, "agent/1": SURE, "agent/2": SURE}}
    session.event("d0", "round", "round/0", alone)
    session.verdict("d0", "Yes", distribution=SURE, payload={"distribution_from": "consensus"})
    assert [truth.cases for truth in dynamics(planted(session)).truth] == [12, 12]


def test_a_single_side_is_held_against_the_labels_as_a_pairs_are(
    planted: Callable[..., Path], session: Any, printed: Callable[..., str]
) -> None:
    for i in range(4):
        session.case(f"c{i}")
        said = CLOSE if i else WRONG
        session.event(
            f"c{i}", "round", "round/0", {"round": 0, "distributions": {"agent/0": said}, "entropy": {"agent/0": 0.5}}
        )
        session.verdict(f"c{i}", "Yes", "alone", distribution=said, payload={"distribution_from": "consensus"})
    found = dynamics(planted(session))
    (truth,) = found.truth
    (alone,) = truth.held
    assert (alone.of, alone.accuracy, alone.kl_infinite) == ("agent/0", 0.75, 1)
    assert alone.brier.mean == pytest.approx((2.0 + 3 * 0.08) / 4)
    assert alone.kl == pytest.approx(-math.log(0.8))
    assert truth.over_better == {}


def test_debates_of_one_round_are_held_against_the_labels_once(
    planted: Callable[..., Path], session: Any, printed: Callable[..., str]
) -> None:
    session.case("c0")
    session.evince("c0", [(0.9, CLOSE, EVEN)])
    session.verdict("c0", "Yes", distribution=CLOSE, payload={"distribution_from": "consensus"})
    found = dynamics(planted(session))
    (truth,) = found.truth
    assert [each.of for each in truth.held] == ["agent/0", "agent/1", "mixture", "consensus"]
    assert "only round, consensus: Brier" in printed(show_dynamics, found, width=200)


def test_without_labels_nothing_is_said(planted: Callable[..., Path], session: Any) -> None:
    session.case("c1", gold=None)
    session.evince("c1", [(0.9, SURE, EVEN), (0.7, CLOSE, LESS)])
    found = dynamics(planted(session))
    assert found.truth == []
    assert "gold" not in report_markdown(dynamics_blocks(found))
