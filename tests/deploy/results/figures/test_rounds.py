"""A run's debates round by round: means, each one's own change, sides and consensus against the gold labels; and what
kappa did, found when it is there, not when it is not, and never claimed beyond what was seen."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from not_none import not_none
from planted_records import Command, PlantedSession, Printed

import moot
from moot.deploy.results.figures.contentiousness import contentiousness_blocks, contentiousness_effect
from moot.deploy.results.figures.rounds import dynamics_blocks, round_dynamics
from moot.deploy.results.report.render import report_markdown, show_report
from moot.deploy.results.stats import mean_over_cases
from moot.protocols.case import Reference


def _plant(session: PlantedSession, cases: int = 20) -> None:
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


def test_means_are_over_the_debates_with_the_round(session: PlantedSession) -> None:
    _plant(session)
    found = round_dynamics(session.plant())
    assert [(each.round, each.cases) for each in found.rounds] == [(0, 20), (1, 20), (2, 10)]
    jsd = [each.measured["jsd"] for each in found.rounds]
    assert [each.mean for each in jsd] == pytest.approx([0.495, 0.2475, 0.125])
    assert 0.4 < not_none(jsd[0].low) < 0.495 < not_none(jsd[0].high) < 0.59
    assert [each.measured["crit"].mean for each in found.rounds] == pytest.approx([0.7, 0.8, 0.9])
    assert "kl" not in found.rounds[0].measured


def test_the_change_is_of_each_debates_own_rounds(session: PlantedSession) -> None:
    _plant(session)
    jsd, kappa = (round_dynamics(session.plant()).changes[key] for key in ("jsd", "kappa"))
    assert (jsd.first, jsd.last) == pytest.approx((0.495, (0.49 / 2 + 0.5 / 4) / 2))
    assert jsd.by_case.mean == pytest.approx(0.185 - 0.495)
    assert jsd.percent == pytest.approx(100.0 * (0.185 / 0.495 - 1.0))
    assert jsd.by_case.cases == 20
    assert kappa.by_case.mean == pytest.approx(-0.3)


def test_a_number_that_a_side_does_not_know_is_unknown_of_all(session: PlantedSession) -> None:
    session.case("c1")
    for n, other in enumerate((0.8, None, 0.6)):
        session.event("c1", "round", f"round/{n}", {"round": n, "crit": {"agent/0": 0.4, "agent/1": other}})
    found = round_dynamics(session.plant())
    assert [each.measured["crit"].mean for each in found.rounds] == [pytest.approx(0.6), None, pytest.approx(0.5)]
    change = found.changes["crit"]
    assert change.by_case.mean == pytest.approx(-0.1)
    assert (change.by_case.low, change.by_case.cases) == (None, 1)


def test_no_share_is_given_of_nothing(session: PlantedSession) -> None:
    session.case("c1")
    for n in (0, 1):
        session.event("c1", "round", f"round/{n}", {"round": n, "jsd": 0.1 * n})
    change = round_dynamics(session.plant()).changes["jsd"]
    assert (change.first, change.percent) == (0.0, None)


def test_the_command_of_a_run(tmp_path: Path, command: Command) -> None:
    run = moot.run(task="sample-symptoms", protocol="evince", engine="inline", out=tmp_path / "run", limit=3).path
    code, out, _ = command("show", str(run), "--rounds", "--format", "json")
    assert (code, json.loads(out)["rounds"][0]["cases"]) == (0, 3)
    assert {"kappa", "jsd", "wd", "entropy", "crit"} <= json.loads(out)["changes"].keys()


SURE, EVEN, WRONG = {"Yes": 1.0, "No": 0.0}, {"Yes": 0.5, "No": 0.5}, {"Yes": 0.0, "No": 1.0}
CLOSE, LESS = {"Yes": 0.8, "No": 0.2}, {"Yes": 0.6, "No": 0.4}


def _plant_sides(session: PlantedSession) -> None:
    """12 cases, gold Yes: agent/0 opens sure and right, in the last four sure and wrong; agent/1 opens undecided."""
    for i in range(12):
        case_id = f"c{i:02}"
        session.case(case_id)
        session.evince(case_id, [(0.9, SURE if i < 8 else WRONG, EVEN), (0.7, CLOSE, LESS)])
        payload = {"distribution_from": "consensus"}
        session.verdict(case_id, "Yes", "converged", distribution={"Yes": 0.9, "No": 0.1}, payload=payload)


def test_first_and_last_round_by_side(session: PlantedSession) -> None:
    _plant_sides(session)
    first, last = round_dynamics(session.plant()).truth
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


def test_only_cases_with_all_sides_and_a_gold_label_count(session: PlantedSession) -> None:
    _plant_sides(session)
    session.case("d1", gold=None)
    session.evince("d1", [(0.9, SURE, EVEN)])
    session.verdict("d1", "Yes", distribution=SURE, payload={"distribution_from": "consensus"})
    session.case("d0")
    alone = {"round": 0, "jsd": 0.0, "distributions": {"agent/0": SURE, "agent/1": SURE, "agent/2": SURE}}
    session.event("d0", "round", "round/0", alone)
    session.verdict("d0", "Yes", distribution=SURE, payload={"distribution_from": "consensus"})
    assert [truth.cases for truth in round_dynamics(session.plant()).truth] == [12, 12]


def test_a_single_side_is_scored_like_a_pair(session: PlantedSession, printed: Printed) -> None:
    for i in range(4):
        session.case(f"c{i}")
        said = CLOSE if i else WRONG
        session.event(
            f"c{i}", "round", "round/0", {"round": 0, "distributions": {"agent/0": said}, "entropy": {"agent/0": 0.5}}
        )
        session.verdict(f"c{i}", "Yes", "alone", distribution=said, payload={"distribution_from": "consensus"})
    found = round_dynamics(session.plant())
    (truth,) = found.truth
    (alone,) = truth.held
    assert (alone.of, alone.accuracy, alone.kl_infinite) == ("agent/0", 0.75, 1)
    assert alone.brier.mean == pytest.approx((2.0 + 3 * 0.08) / 4)
    assert alone.kl == pytest.approx(-math.log(0.8))
    assert truth.over_better == {}


def test_debates_of_one_round_are_scored_once(session: PlantedSession, printed: Printed) -> None:
    session.case("c0")
    session.evince("c0", [(0.9, CLOSE, EVEN)])
    session.verdict("c0", "Yes", distribution=CLOSE, payload={"distribution_from": "consensus"})
    found = round_dynamics(session.plant())
    (truth,) = found.truth
    assert [each.of for each in truth.held] == ["agent/0", "agent/1", "mixture", "consensus"]
    assert "only round, consensus: Brier" in printed(show_report, found, lambda: dynamics_blocks(found), width=200)


def test_without_labels_nothing_is_scored(session: PlantedSession) -> None:
    session.case("c1", gold=None)
    session.evince("c1", [(0.9, SURE, EVEN), (0.7, CLOSE, LESS)])
    found = round_dynamics(session.plant())
    assert found.truth == []
    assert "gold" not in report_markdown(dynamics_blocks(found))


LEVELS = (0.1, 0.5, 0.9)


def _plant_kappa(
    session: PlantedSession, cases: int, effect: float, *, schedule: str = "random", trend: float = 0.2
) -> None:
    """Debates of three rounds whose agreement language falls by `effect` from kappa 0 to 1, and rises by `trend` from
    round to round whatever kappa is, as do entropy and JSD.

    Kappa is drawn at random; with another schedule it falls with the rounds.
    """
    drawn = random.Random(7)
    for i in range(cases):
        session.case(f"c{i:02}")
        own = drawn.random() * 0.1
        session.event(f"c{i:02}", "round", "round/0", {"round": 0, "kappa": 0.9, "jsd": 9.0, "agreement_words": 9.0})
        for n in (1, 2, 3):
            kappa = drawn.choice(LEVELS) if schedule == "random" else LEVELS[-n]
            data: dict[str, Any] = {"round": n, "kappa": kappa, "jsd": 0.2 + trend * n + drawn.gauss(0.0, 0.02)}
            data["entropy"] = {"agent/0": 9.0, "agent/1": 1.0 + own + trend * n + drawn.gauss(0.0, 0.02)}
            data["agreement_words"] = own + trend * n - effect * kappa + drawn.gauss(0.0, 0.02)
            session.event(f"c{i:02}", "round", f"round/{n}", data)
        session.event(f"c{i:02}", "contentiousness", "round/0", {"before": 0.9, "after": 0.5, "schedule": schedule})


@pytest.fixture
def reacting(session: PlantedSession) -> Path:
    _plant_kappa(session, 40, 0.4)
    session.reply("c0", "opening/agent/0", 1)
    return session.plant(simulated=True)


def test_an_effect_is_found_in_the_measure_that_has_it_and_in_no_other(reacting: Path) -> None:
    found = contentiousness_effect(reacting)
    assert [level.kappa for level in found.levels] == [0.1, 0.5, 0.9]
    assert sum(level.rounds for level in found.levels) == 120, "the opening exchange is left out"
    words = found.slopes["agreement_words"]
    assert words.per_kappa == pytest.approx(-0.4, abs=0.03)
    assert words.moves
    assert (found.slopes["entropy"].moves, found.slopes["jsd"].moves) == (False, False)
    assert found.slopes["entropy"].per_kappa == pytest.approx(0.0, abs=0.03)
    assert found.moves
    assert found.randomised
    assert found.schedules == ["random"]


def test_no_effect_is_not_found_though_debates_change_with_the_rounds(
    session: PlantedSession, printed: Printed
) -> None:
    _plant_kappa(session, 40, 0.0)
    found = contentiousness_effect(session.plant())
    assert found.moves is False


def test_where_kappa_follows_the_rounds_nothing_is_claimed(session: PlantedSession, printed: Printed) -> None:
    _plant_kappa(session, 40, 0.4, schedule="linear")
    found = contentiousness_effect(session.plant())
    assert (found.moves, found.slopes, found.randomised) == (None, {}, False)
    assert found.levels[0].measured["agreement_words"].mean is not None
    assert "This run cannot show whether" in printed(
        show_report, found, lambda: contentiousness_blocks(found), width=200
    )


def test_values_of_a_side_that_failed_to_speak_do_not_count(session: PlantedSession) -> None:
    session.case("c1")
    heard = {"entropy": {"agent/1": 1.0}, "jsd": 0.2, "kappa": 0.5}
    session.event("c1", "round", "round/1", {**heard, "round": 1})
    stale = {**heard, "entropy": {"agent/1": 9.0}, "jsd": 9.0, "round": 2, "failed": ["round/2/agent/1"]}
    session.event("c1", "round", "round/2", stale)
    measured = contentiousness_effect(session.plant()).levels[0].measured
    assert (measured["entropy"].mean, measured["jsd"].mean) == (1.0, 0.2)


@pytest.mark.parametrize(
    ("order", "entropy"), [(["agent/1", "agent/0"], 2.0), (["agent/0", "agent/1"], 1.0), (None, 1.0)]
)
def test_the_side_that_answers_is_the_second_to_speak(
    session: PlantedSession, order: list[str] | None, entropy: float
) -> None:
    session.case("c1")
    data = {"round": 1, "kappa": 0.5, "entropy": {"agent/0": 2.0, "agent/1": 1.0}}
    session.event("c1", "round", "round/1", data | ({} if order is None else {"order": order}))
    assert contentiousness_effect(session.plant()).levels[0].measured["entropy"].mean == entropy


def test_few_cases_have_means_and_no_intervals(session: PlantedSession, printed: Printed) -> None:
    _plant_kappa(session, 9, 0.4)
    found = contentiousness_effect(session.plant())
    assert found.moves is None
    assert found.levels[0].measured["jsd"].mean is not None
    assert found.levels[0].measured["jsd"].low is None
    assert "react to contentiousness is unknown: fewer than 10 groups of cases can be compared" in " ".join(
        printed(show_report, found, lambda: contentiousness_blocks(found), width=200).split()
    )


def test_cases_about_one_text_are_one_for_every_interval(session: PlantedSession) -> None:
    for i in range(40):
        session.case(f"c{i}", reference=Reference(group=f"text {i % 5}"))
        data = {"jsd": 0.1 + i / 100, "entropy": {"agent/1": 0.5}}
        for n, kappa in ((1, 0.1 + i % 3 / 3), (2, 0.9 - i % 3 / 3)):
            session.event(f"c{i}", "round", f"round/{n}", {**data, "round": n, "kappa": kappa})
        session.event(f"c{i}", "contentiousness", "round/0", {"before": 0.9, "after": 0.5, "schedule": "random"})
    folder = session.plant()
    [one, two] = [each.measured["jsd"] for each in round_dynamics(folder).rounds]
    assert (one.cases, one.low, two.low) == (40, None, None), "five texts are too few, however many cases"
    slope = contentiousness_effect(folder).slopes["jsd"]
    assert (slope.cases, slope.per_kappa is None, slope.low) == (40, False, None)


def test_many_levels_are_binned_to_tenths(session: PlantedSession) -> None:
    for i in range(24):
        session.case(f"c{i}")
        session.event(f"c{i}", "round", "round/1", {"round": 1, "kappa": 0.3 + i / 50, "jsd": 0.1})
    found = contentiousness_effect(session.plant())
    assert found.binned
    assert [level.kappa for level in found.levels] == [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert sum(level.rounds for level in found.levels) == 24


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--dial"], "no round states a kappa"),
        (["--dial", "--questioned"], "--dial is about a whole run: leave out --questioned"),
        (["--rounds", "--dial"], "--rounds is about a whole run: leave out --dial"),
        (["c1", "--dial"], "leave out the case"),
    ],
)
def test_a_run_without_a_dial_is_refused(
    session: PlantedSession, command: Command, flags: list[str], said: str
) -> None:
    session.case("c1")
    session.event("c1", "round", "round/1", {"round": 1, "d": 0.1})
    session.verdict("c1")
    code, _, err = command("show", str(session.plant()), *flags)
    assert (code, said in err) == (2, True), err


def test_cases_of_one_group_count_as_one() -> None:
    values = [random.Random(i).random() for i in range(12)]
    alone = mean_over_cases([(f"c{i}", value) for i, value in enumerate(values)], str)
    twice = [(f"c{i}-{copy}", value) for i, value in enumerate(values) for copy in "ab"]
    grouped = mean_over_cases(twice, lambda case_id: case_id[:-2])
    assert (grouped.low, grouped.high) == pytest.approx((alone.low, alone.high))
    assert grouped.cases == 24
