"""The figures of a grid: against numbers worked out by hand on planted records."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from not_none import not_none
from planted_records import GridOf, PlantedGrid, Printed

from moot.deploy.studies.ablation.report import next_cells, show_ablation
from moot.protocols.errors import ConfigError

RIGHT, WRONG, FAILED, SILENT, UNLABELLED = "right", "wrong", "failed", "silent", "unlabelled"


def plant(
    grid: PlantedGrid, number: int, outcomes: Mapping[str, str], *, tokens: int | None = 10, question: str = "Is it?",
    shares: Mapping[str, Mapping[str, float]] | None = None, labels: tuple[str, ...] = ("Yes", "No"),
    payload: Mapping[str, Any] | None = None, **run_yaml: Any,
) -> None:  # fmt: skip
    """Plant a cell of cases that ended so."""
    session = grid.session.new()
    for case_id, outcome in outcomes.items():
        session.case(
            case_id, gold=None if outcome == UNLABELLED else "Yes", question=f"{case_id}: {question}", labels=labels
        )
        session.reply(case_id, "opening/agent/0", tokens)
        if outcome == FAILED:
            session.verdict(case_id, None, "failed", failure="bug")
            continue
        answer = None if outcome == SILENT else "No" if outcome == WRONG else "Yes"
        session.verdict(case_id, answer, "single", distribution=(shares or {}).get(case_id), payload=payload or {})
    grid.plant(number, session, cases=len(outcomes), **run_yaml)


def test_every_case_is_counted_once_and_only_scored_ones_are_paired(grid_of: GridOf) -> None:
    grid = grid_of("k=x,y")
    plant(grid, 0, {"a": RIGHT, "b": WRONG, "c": RIGHT, "d": FAILED, "e": SILENT, "f": UNLABELLED}, tokens=20)
    plant(grid, 1, {"a": RIGHT, "b": RIGHT, "c": WRONG, "d": RIGHT, "e": RIGHT, "f": UNLABELLED})
    base, other = grid.measured().cells
    assert (base.cases, base.answered, base.abstained, base.failed, base.open, base.scored) == (6, 4, 1, 1, 0, 4)
    assert (base.coverage, base.accuracy, base.tokens_per_case, base.vs_baseline) == (4 / 6, 2 / 4, 20.0, None)
    assert other.accuracy_interval == pytest.approx((0.3755, 0.9638), abs=1e-4), "Wilson's for 4 of 5"
    against = not_none(other.vs_baseline)
    test = against.accuracy
    assert (test.only_first, test.only_second, test.difference, round(test.p_value or 0, 4), test.n) == (
        2,
        1,
        0.25,
        0.5637,
        4,
    )
    assert against.left_out == {"failed": 1, "no gold label": 1}


def test_what_cannot_be_compared_is_unknown_and_not_zero(grid_of: GridOf) -> None:
    grid = grid_of("k=x,y,z,w")
    plant(grid, 0, {"a": RIGHT})
    plant(grid, 1, {"a": FAILED}, tokens=None)
    plant(grid, 2, {"a": RIGHT}, question="Another?")
    found = grid.measured()
    failed, other_text = found.cells[1:]
    assert (failed.accuracy, failed.accuracy_interval, failed.tokens_per_case, failed.coverage) == (None, None, None, 0)
    assert (not_none(failed.vs_baseline).accuracy.difference, not_none(failed.vs_baseline).p_adjusted) == (None, None)
    assert not_none(other_text.vs_baseline).left_out == {"other text": 1}
    assert found.not_begun == ["k=w"]


def two_sided(b: int, c: int) -> float:
    """McNemar's p, from its definition."""
    return math.erfc(abs(b - c) / math.sqrt(2 * (b + c)))


def outcomes(n: int, wrong: range) -> dict[str, str]:
    return {f"{i:03}": WRONG if i in wrong else RIGHT for i in range(n)}


def test_a_planted_effect_is_found_and_a_null_effect_is_not(grid_of: GridOf) -> None:
    grid = grid_of("k=base,better,same,slightly")
    plant(grid, 0, outcomes(120, range(0, 40)))
    plant(grid, 1, outcomes(120, range(38, 45)))
    plant(grid, 2, outcomes(120, range(20, 60)))
    plant(grid, 3, outcomes(120, range(9, 42)))
    found = grid.measured()
    tests = [each.vs_baseline for each in found.cells if each.vs_baseline]
    assert [(each.accuracy.only_first, each.accuracy.only_second) for each in tests] == [(38, 5), (20, 20), (9, 2)]
    p = [two_sided(38, 5), two_sided(20, 20), two_sided(9, 2)]
    assert [each.accuracy.p_value for each in tests] == pytest.approx(p)
    adjusted = [3 * p[0], p[1], 3 * p[2] / 2]  # the first, third and second of three
    assert [each.p_adjusted for each in tests] == pytest.approx(adjusted)
    better, same, slightly = tests
    assert not_none(better.p_adjusted) < 1e-5
    assert better.accuracy.difference == pytest.approx(33 / 120)
    assert (same.accuracy.difference, same.p_adjusted) == (0.0, 1.0)
    assert not_none(slightly.p_adjusted) > 0.05
    assert found.warnings == []
    assert next_cells(found) == [("k=base", "the baseline"), ("k=better", "the most accurate of the others")]
    against_another = not_none(grid.measured("k=same").cells[0].vs_baseline)
    assert (against_another.accuracy.only_first, against_another.accuracy.only_second) == (20, 20)


def test_the_suggested_cell_is_reported_as_equal_to_others_where_it_is(grid_of: GridOf) -> None:
    grid = grid_of("k=a,b,c")
    for number, wrong in enumerate((range(3), range(4, 7), range(8))):
        plant(grid, number, outcomes(12, wrong))
    assert next_cells(grid.measured())[1] == ("k=b", "the most accurate of the others, as accurate as the baseline")
    assert next_cells(grid.measured("k=c"))[1] == ("k=a", "one of the 2 most accurate of the others")


def test_distributions_are_scored_case_by_case(grid_of: GridOf) -> None:
    grid = grid_of("k=x,y,none")
    cases = {f"{i:02}": RIGHT for i in range(12)}
    plant(grid, 0, cases, shares={case_id: {"Yes": 0.5, "No": 0.5} for case_id in cases})
    sharp = {case_id: {"Yes": 0.8 + i / 100, "No": 0.2 - i / 100} for i, case_id in enumerate(cases)}
    plant(grid, 1, cases, shares={**sharp, "11": {"No": 1.0}})
    plant(grid, 2, cases)
    found = grid.measured()
    base, other = (not_none(each.brier) for each in found.cells[:2])
    without = found.cells[2].brier
    assert (base.mean, base.n, base.vs_baseline, without) == (0.5, 12, None, None)
    scores = [2 * (0.2 - i / 100) ** 2 for i in range(11)]
    assert other.mean == pytest.approx((sum(scores) + 2.0) / 12), "a truth that is not named has no share: 2"
    low, high = not_none(other.interval)
    assert low < other.mean < high
    against = not_none(other.vs_baseline)
    assert against.n == 12
    assert against.difference == pytest.approx(other.mean - 0.5)
    assert against.cliffs_delta == pytest.approx((1 - 11) / 12)
    assert not_none(against.p_value) < 0.12, "eleven of twelve are better, the greatest difference is worse"
    assert against.p_adjusted == against.p_value, "one comparison"


def test_the_order_of_the_record_changes_no_figure(grid_of: GridOf) -> None:
    grid = grid_of("k=x,y,z")
    cases = {f"{i:02}": RIGHT for i in range(30)}
    shares = {case_id: {"Yes": 0.2 + 0.7 * (i * i % 13) / 13} for i, case_id in enumerate(cases)}
    shares = {case_id: {**each, "No": 1.0 - each["Yes"]} for case_id, each in shares.items()}
    for number, order in enumerate((sorted(cases), sorted(cases, reverse=True), sorted(cases, key=lambda i: i[::-1]))):
        plant(grid, number, {case_id: RIGHT for case_id in order}, shares=shares)
    figures = [(not_none(each.brier).mean, not_none(not_none(each.brier).interval)) for each in grid.measured().cells]
    assert figures == [figures[0]] * 3


def test_shares_of_votes_have_no_brier_score(grid_of: GridOf, printed: Printed) -> None:
    grid, shares = grid_of("k=x,y,z"), {"a": {"Yes": 0.75, "No": 0.25}}
    for number, source in enumerate(("votes", "votes", "consensus")):
        plant(grid, number, {"a": RIGHT, "b": FAILED}, shares=shares, payload={"distribution_from": source})
    first, second, third = grid.measured().cells
    assert (first.brier, second.brier, not_none(third.brier).vs_baseline) == (None, None, None)
    assert second.brier_left_out == {"failed": 1, "shares of votes": 1}
    text = " ".join(printed(show_ablation, grid.measured(), width=200).split())
    assert "x not applicable 0 1 failed, 1 shares of votes" in text


def test_cases_without_a_brier_score_are_counted_and_reported(grid_of: GridOf, printed: Printed) -> None:
    grid = grid_of("k=x,y")
    shares = {case_id: {"Yes": 1.0} for case_id in "abc"} | {"d": {"Yes": 0.5}}
    outcomes = {"a": RIGHT, "b": UNLABELLED, "c": SILENT, "d": RIGHT, "e": RIGHT, "f": FAILED}
    plant(grid, 0, outcomes, shares=shares)
    plant(grid, 1, {"a": RIGHT}, shares=shares, labels=("No", "Maybe"))
    found = grid.measured()
    first, second = found.cells
    assert (not_none(first.brier).n, second.brier) == (2, None), "an abstention may have a distribution"
    assert first.brier_left_out == {
        "failed": 1, "no distribution": 1, "no distribution over the labels": 1, "no gold label": 1
    }  # fmt: skip
    assert second.brier_left_out == {"gold outside the labels": 1}
    text = " ".join(printed(show_ablation, found, width=200).split())
    assert "2 1 failed, 1 no distribution, 1 no distribution over the labels, 1 no gold label" in text
    assert "y unknown 0 1 gold outside the labels" in text


def test_of_several_attempts_only_the_latest_one_is_scored(grid_of: GridOf) -> None:
    grid = grid_of("k=x,y")
    plant(grid, 0, {"a": RIGHT, "b": RIGHT}, shares={"a": {"Yes": 0.5, "No": 0.5}})
    first, again = grid.session.new(), grid.session.new()
    for case_id, latest in (("a", {"Yes": 1.0, "No": 0.0}), ("b", None)):
        for each in (first, again):
            each.case(case_id)
        first.verdict(case_id, None, "failed", failure="bug", distribution={"Yes": 0.0, "No": 1.0})
        again.verdict(case_id, "Yes", attempt=1, distribution=latest)
    grid.plant(1, first, again)
    found = grid.measured().cells[1]
    assert (found.accuracy, found.scored) == (1.0, 2)
    brier = not_none(found.brier)
    assert (brier.mean, brier.interval, brier.n, not_none(brier.vs_baseline).difference) == (0.0, None, 1, -0.5)


def test_main_effects_are_means_over_the_other_keys(grid_of: GridOf) -> None:
    grid = grid_of("k=x,y", "m=1,2")
    plant(grid, 0, {"a": RIGHT, "b": WRONG, "c": WRONG, "d": RIGHT}, tokens=10)
    plant(grid, 1, {"a": RIGHT, "b": RIGHT, "c": WRONG, "d": FAILED}, tokens=20)
    plant(grid, 2, {"a": RIGHT, "b": RIGHT, "c": WRONG, "d": RIGHT}, tokens=30)
    plant(grid, 3, {"a": RIGHT, "b": RIGHT, "c": RIGHT, "d": RIGHT}, tokens=40)
    effects = {(each.key, each.value): each for each in grid.measured().main_effects}
    assert {each.n for each in effects.values()} == {3}, "the fourth has failed in a cell"
    assert {key: each.accuracy for key, each in effects.items()} == pytest.approx(
        {("k", "x"): 3 / 6, ("k", "y"): 5 / 6, ("m", "1"): 3 / 6, ("m", "2"): 5 / 6}
    )
    assert {key: each.tokens_per_case for key, each in effects.items()} == {
        ("k", "x"): (10 + 20) / 2, ("k", "y"): 35.0, ("m", "1"): 20.0, ("m", "2"): 30.0
    }  # fmt: skip
    assert effects["k", "x"].difference is None
    assert effects["k", "y"].difference == pytest.approx(2 / 6)
    assert effects["k", "y"].interval is None, "of three cases"


def test_main_effects_need_the_whole_grid_and_more_than_one_key(grid_of: GridOf) -> None:
    grid = grid_of("k=x,y", "m=1,2")
    for number in range(3):
        plant(grid, number, {"a": RIGHT})
    found = grid.measured()
    assert (found.main_effects, found.not_begun) == ([], ["k=y,m=2"])


def test_nothing_is_compared_before_the_baseline_has_begun(grid_of: GridOf) -> None:
    grid = grid_of("k=x,y")
    with pytest.raises(ConfigError, match="no cell of this grid has started"):
        grid.measured()
    plant(grid, 0, {"a": RIGHT})
    found = grid.measured("k=y")
    assert found.cells[0].vs_baseline is None
    assert "the baseline, k=y, has not started: nothing is compared" in found.warnings


def test_it_is_shown_in_three_forms(grid_of: GridOf, printed: Printed) -> None:
    grid = grid_of("gate.k=x,y", "m=1,2")
    half = {"Yes": 0.5, "No": 0.5}
    for number, case in enumerate((RIGHT, FAILED, RIGHT, WRONG)):
        plant(grid, number, {"a": case, "b": RIGHT}, shares={"a": half}, simulated=True)
    found = grid.measured(shared_replies=True)
    text = printed(show_ablation, found, width=80)
    flat = " ".join(text.split())
    assert "simulated models: these figures show" in flat
    assert "cells share replies" in flat
    assert "only 1 case in a comparison" in flat
    assert "against gate.k=x,m=1" in flat
    assert "1 failed" in flat
    assert max(map(len, text.splitlines())) <= 80
    markdown = printed(show_ablation, found, "md")
    assert "\x1b" not in markdown
    assert "| k | m | accuracy, % | n |" in markdown
    assert json.loads(printed(show_ablation, found, "json")) == json.loads(found.model_dump_json())


def test_debates_are_compared_by_means_over_cases_and_changes_within_them(grid_of: GridOf, printed: Printed) -> None:
    """What they were like in each cell, whether or not it changed an answer."""
    grid = grid_of("k=x,y")
    cells: list[dict[str, list[float]]] = [{"a": [0.0, 0.2], "b": [0.4], "c": [0.9]}, {"a": [0.5], "b": [0.6]}]
    for number, words in enumerate(cells):
        session = grid.session.new()
        for case_id, of_rounds in words.items():
            session.case(case_id, gold=None)
            for place, value in enumerate(of_rounds):
                data = {"round": place, "agreement_words": value, "gamma": None, "conceded": ["agent/0"], "words": 10}
                session.event(case_id, "round", f"round/{place}", data)
            session.event(case_id, "closing", "closing", {"agreement_words": None})
            session.verdict(case_id, "For", "plateau")
        grid.plant(number, session, cases=len(words))
    base, other = (cell.debates for cell in grid.measured().cells)
    assert base.keys() == other.keys() == {"agreement_words", "conceded", "words"}
    words_of_base = base["agreement_words"]
    assert words_of_base.mean == pytest.approx((0.1 + 0.4 + 0.9) / 3)
    assert (words_of_base.n, words_of_base.vs_baseline) == (3, None)
    change = not_none(other["agreement_words"].vs_baseline)
    assert change.n == 2
    assert change.difference == pytest.approx(0.3)
    assert (change.p_value, change.interval) == (None, None), "of two cases"
    said = printed(show_ablation, grid.measured(), "md")
    assert "agreement language of the rounds, 0 to 1: mean" in said
    assert "| y | 0.55 | 2 | +0.3 |" in said
    assert "Gamma" not in said
