"""Where debates stop, chosen from the record: a planted effect, none, and a recomputation the slow way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from gated_cases import gate
from not_none import not_none
from planted_records import InlineRun, PlantedSession, Printed

from moot.deploy.results.record import read_events
from moot.deploy.studies.calibration.branches import read_both_branches
from moot.deploy.studies.calibration.epsilon import EpsilonChoice, majority_answer, read_debate_rounds
from moot.deploy.studies.calibration.gate import GateCalibration, calibrate
from moot.deploy.studies.calibration.report import show_calibration
from moot.protocols.selene.debate import stop_reason
from moot.protocols.selene.events import RoundEnded

Round = tuple[float | None, Sequence[str]]
"""By how much D moved, and the agents' answers."""


def add_debate(session: PlantedSession, i: int, rounds: Sequence[Round], epsilon: float = 0.0, **told: Any) -> None:
    case, gold = f"c{i}", "Yes"
    session.case(case, gold=gold)
    session.reply(case, "opening/agent/0", 100)
    session.event(case, "gate", "gate", gate())
    for t, (delta, answers) in enumerate(rounds, 1):
        for agent in range(len(answers)):
            session.reply(case, f"round/{t}/agent/{agent}", 50)
        data = {"round": t, "d": 0.1, "d_before": 0.1, "delta": delta, "joined": [], "failed": {}, **told}
        data["answers"] = {f"agent/{a}": answer for a, answer in enumerate(answers)}
        data["stated"] = {f"agent/{a}": 0.5 for a in range(len(answers))}
        session.event(case, "round", f"round/{t}", data)
    session.event(case, "stop", "stop", {"reason": "t_max", "rounds": len(rounds), "epsilon": epsilon})
    session.event(case, "branches", "branches", {"skipped_answer": "Yes", "debated_answer": "Yes"})
    session.verdict(case, "Yes", "skipped")


def chosen(run: Path, **options: Any) -> EpsilonChoice:
    found = not_none(calibrate(run, **options).stopping)
    return found


def test_a_bound_that_would_stop_before_the_error_is_mended_is_not_chosen(session: PlantedSession) -> None:
    """In half of the cases D hardly moves in round 1, and the vote is wrong until round 2; then D moves little."""
    late = [(0.05, ["No", "No", "Yes"]), (0.3, ["Yes"] * 3), (0.01, ["Yes"] * 3)]
    early = [(0.3, ["Yes"] * 3), (0.02, ["Yes"] * 3), (0.01, ["Yes"] * 3)]
    for i in range(40):
        add_debate(session, i, late if i % 2 else early)
    found = chosen(session.plant(encoder="e"))
    assert 0.02 < found.chosen.epsilon <= 0.05
    assert found.held_out.accuracy == found.as_run.accuracy == 1.0
    assert found.held_out.rounds < found.as_run.rounds == 3.0
    assert any(point.accuracy < 0.8 for point in found.grid)
    assert chosen(session.plant(encoder="e"), tolerance=1.0).chosen.rounds == 1.0


def test_where_rounds_change_nothing_the_shortest_debate_is_chosen(session: PlantedSession, printed: Printed) -> None:
    for i in range(30):
        answers = ["Yes" if i % 3 else "No"] * 2
        add_debate(session, i, [(0.1, answers), (0.1, answers), (0.1, answers)])
    found = chosen(session.plant(encoder="e"))
    assert found.chosen.rounds == 1.0
    assert (found.vs_run.only_first, found.vs_run.only_second) == (0, 0)
    assert found.held_out.cost_vs_run == pytest.approx((100 + 100) / (100 + 300))
    whole = calibrate(session.plant(encoder="e"))
    assert "epsilon" not in whole.set_line, "what was not tried together is not set together"
    assert f"--set debate.epsilon={found.chosen.epsilon:g}" in printed(show_calibration, whole)


def test_no_bound_below_the_runs_is_tried(session: PlantedSession) -> None:
    for i in range(20):
        add_debate(session, i, [(0.2, ["Yes", "No"]), (0.01, ["Yes", "Yes"])], epsilon=0.05)
    found = chosen(session.plant(encoder="e"))
    assert found.run_epsilon == min(point.epsilon for point in found.grid) == 0.05


@pytest.mark.parametrize(
    ("delta", "told"),
    [
        (None, {}),
        (0.0, {"joined": ["agent/1"]}),
        (0.0, {"failed": {"agent/0": "timeout", "agent/1": "timeout"}}),
    ],
)
def test_a_round_that_is_no_sign_of_stability_stops_nothing(
    session: PlantedSession, delta: float | None, told: dict[str, Any]
) -> None:
    for i in range(8):
        add_debate(session, i, [(delta, ["No", "No"]), (delta, ["Yes", "Yes"])], **told)
    found = chosen(session.plant(encoder="e"))
    assert [point.rounds for point in found.grid] == [2.0]


def test_without_rounds_they_are_not_mentioned(session: PlantedSession) -> None:
    for i in range(8):
        add_debate(session, i, [])
    found = calibrate(session.plant(encoder="e"))
    assert found.stopping is None
    assert "epsilon" not in found.set_line


def test_a_tied_vote_goes_by_stated_confidence() -> None:
    answers = {"agent/0": "No", "agent/1": "Yes"}
    for stated, expected in ((0.6, "Yes"), (0.4, "No")):
        ended = RoundEnded(round=1, delta=0.0, answers=answers, stated={"agent/0": 0.4, "agent/1": stated})
        assert majority_answer(ended) == expected


def test_a_real_record_again_the_slow_way(inline_run: InlineRun) -> None:
    run = inline_run("selene", both_branches=True, **{"debate.epsilon": 0})
    found: GateCalibration = calibrate(run, holdout=0.4, seed=3)
    cases = read_both_branches(run, "")
    debates = read_debate_rounds(run, cases.case_ids)
    told: dict[str, list[Any]] = {}
    for event in read_events(run, ["round"]):
        told.setdefault(event.case_id, []).append(event.data)
    held = cases.held_out(0.4, 3)
    for point in not_none(found.stopping).grid:
        stops = []
        for case_id, out in zip(cases.case_ids, held, strict=True):
            rounds = sorted(told[case_id], key=lambda data: data["round"])
            reasons = [
                stop_reason(
                    data["d_before"], data["d"], agree=False, revised=True, last=data is rounds[-1],
                    epsilon=point.epsilon,
                )
                for data in rounds
            ]  # fmt: skip
            if not out:
                stops.append(next(i for i, reason in enumerate(reasons, 1) if reason is not None))
        assert point.rounds == pytest.approx(fmean(stops))
    assert debates.epsilon == 0.0
    assert not_none(found.stopping).grid[0].cost_vs_run == 1.0
