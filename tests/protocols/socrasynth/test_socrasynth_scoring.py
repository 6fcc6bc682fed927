"""The panel's arithmetic: the source's printed tables, ties, and judgments that did not come."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.socrasynth.events import SideTotals
from moot.protocols.socrasynth.schedule import Schedule, next_level
from moot.protocols.socrasynth.scoring import JudgeMarks, Marks, first_mover_advantage, outcome_of

JUDGES = ("text-davinci-003", "GPT-3.5", "GPT-4")
# Tables 6.5 and 6.6: per judge A's marks and B's marks on the five topics, first with A arguing, then with B.
PRINTED: dict[Literal[1, 2], dict[str, tuple[list[int], list[int]]]] = {
    1: {
        "text-davinci-003": ([8, 7, 9, 6, 7], [6, 5, 5, 8, 8]),
        "GPT-3.5": ([8, 7, 6, 8, 7], [7, 6, 7, 6, 7]),
        "GPT-4": ([8, 9, 7, 8, 7], [7, 6, 6, 7, 6]),
    },
    2: {
        "text-davinci-003": ([7, 8, 8, 8, 7], [8, 9, 6, 7, 8]),
        "GPT-3.5": ([7, 8, 8, 8, 8], [8, 7, 7, 7, 7]),
        "GPT-4": ([8, 8, 7, 7, 8], [7, 6, 6, 7, 7]),
    },
}


def sheet(judge: str, order: Literal[1, 2], marks: list[Marks | None]) -> JudgeMarks:
    missing = {number: "timeout: late" for number, pair in enumerate(marks, 1) if pair is None}
    return JudgeMarks(judge, order, tuple(marks), ("",) * len(marks), missing)


def printed() -> list[JudgeMarks]:
    return [
        sheet(judge, order, [(float(a), float(b)) for a, b in zip(*found[judge], strict=True)])
        for judge in JUDGES
        for order, found in PRINTED.items()
    ]


class TestThePrintedTables:
    def test_totals_and_winners(self) -> None:
        found = {(one.judge, one.order): (one.totals(), one.winner) for one in printed()}
        assert found == {
            ("text-davinci-003", 1): ((37, 32), "A"),
            ("GPT-3.5", 1): ((36, 33), "A"),
            ("GPT-4", 1): ((39, 32), "A"),
            ("text-davinci-003", 2): ((38, 38), "tie"),  # the text has A win everywhere: one is a tie
            ("GPT-3.5", 2): ((39, 36), "A"),
            ("GPT-4", 2): ((38, 33), "A"),
        }

    def test_first_mover_advantage(self) -> None:
        assert [first_mover_advantage(printed(), judge) for judge in JUDGES] == [2.5, 0, 1]

    def test_the_outcome(self) -> None:
        outcome = outcome_of(printed())
        assert (outcome.winner, outcome.missing) == ("A", 0)
        assert outcome.totals == (round(227 / 6, 9), round(204 / 6, 9))
        assert outcome.position_bias == {"text-davinci-003": 2.5, "GPT-3.5": 0, "GPT-4": 1}


class TestMissing:
    def test_a_missing_judgment_is_no_zero(self) -> None:
        one, two = sheet("j", 1, [(5, 6), None]), sheet("j", 2, [(5, 6), (9, 1)])
        assert (one.totals(), one.winner, dict(one.missing)) == ((5, 6), "B", {2: "timeout: late"})
        outcome = outcome_of([one, two])
        # A's 9 to 1 has no counterpart in the other order, so it does not count for all.
        assert (outcome.winner, outcome.totals, outcome.missing) == ("B", (5, 6), 1)
        assert outcome.position_bias == {"j": 0}

    def test_without_any_pair_nothing_is_known(self) -> None:
        outcome = outcome_of([sheet("j", 1, [(5, 6)]), sheet("j", 2, [None])])
        assert (outcome.winner, outcome.totals, outcome.position_bias) == (None, None, {"j": None})
        assert sheet("j", 2, [None]).record().totals == SideTotals(A=None, B=None)
        assert outcome_of([]).winner is None

    def test_sums_of_fractions_tie_when_they_should(self) -> None:
        outcome = outcome_of([sheet("j", order, [(0.1, 0.3), (0.2, 0.0)]) for order in (1, 2)])
        assert outcome.winner == "tie"


MARKS = st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 10), st.integers(0, 10))), min_size=3, max_size=3)


@given(MARKS, MARKS)
def test_swapping_the_sides_swaps_the_winner(one: list[Marks | None], two: list[Marks | None]) -> None:
    def swapped(marks: list[Marks | None]) -> list[Marks | None]:
        return [None if pair is None else (pair[1], pair[0]) for pair in marks]

    straight = outcome_of([sheet("j", 1, one), sheet("j", 2, two)])
    # The other side now argues first where A did, so that the orders swap with the sides.
    turned = outcome_of([sheet("j", 2, swapped(one)), sheet("j", 1, swapped(two))])
    assert {straight.winner, turned.winner} in ({"A", "B"}, {"tie"}, {None})
    assert straight.position_bias == turned.position_bias


def all_levels(schedule: Schedule, max_rounds: int, start: float = 0.9) -> list[float]:
    levels = [start]
    for number in range(1, max_rounds + 1):
        level = next_level(schedule, number, levels[-1])
        if level is None:
            break
        levels.append(level)
    return levels


class TestSchedules:
    def test_geometric_has_twelve_rounds(self) -> None:
        levels = all_levels("geometric", 50)
        assert len(levels) == 13
        assert levels[1] == pytest.approx(0.75)
        assert levels[-1] > 0.1 >= levels[-1] / 1.2

    def test_the_others(self) -> None:
        assert all_levels("three-phase", 50) == [0.9, 0.7, 0.5, 0.1]
        assert all_levels("geometric", 0) == [0.9]

    @pytest.mark.parametrize("level", [0.9, 0.7, 0.5, 0.3, 0.1])
    def test_a_fixed_level_stays(self, level: float) -> None:
        assert all_levels("fixed", 3, level) == [level] * 4

    def test_a_level_that_a_person_set_is_the_new_start(self) -> None:
        assert next_level("geometric", 3, 0.6) == pytest.approx(0.5)
        assert next_level("fixed", 3, 0.6) == 0.6
        assert next_level("three-phase", 3, 0.6) == 0.1
        assert next_level("three-phase", 2, 0.3) == 0.3, "a level that was lowered does not rise again"
        assert next_level("geometric", 3, 0.0) is None
