"""Agreement of judges: what is compared with what, and what is reported where nothing can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from not_none import not_none

from moot.deploy.results.figures.judges import Agreement, judge_consistency
from moot.metrics.agreement import gwet_ac2, krippendorff_alpha, raw_agreement
from moot.protocols.rubrics.events import ReplyAssessed

Sheet = tuple[int, int] | None
"""A score and a flag; None for a missing mark."""


def assessment(marks: Sequence[Sequence[Sheet]], **changes: Any) -> ReplyAssessed:
    """An event's data: `marks[judge][pass]`."""
    judges = [
        {
            "judge": f"judge/{judge}",
            "model": f"model-{judge}",
            "pass": number,
            "scores": None if sheet is None else {"depth": sheet[0]},
            "flag": None if sheet is None else bool(sheet[1]),
            "total": None if sheet is None else sheet[0] * (1 - sheet[1]),
            "missing": "" if sheet is not None else "refused: no",
        }
        for judge, passes in enumerate(marks)
        for number, sheet in enumerate(passes)
    ]
    scales = [["depth", 1, 3], ["critical_flag", 0, 1]]
    told = {"reply": "reply", "role": "reply", "domain": "", "rubric": "mine", "scales": scales, "judges": judges}
    found = not_none(
        ReplyAssessed.read(told | {"scores": {"depth": None}, "flag": None, "quality": None, "missing": 0} | changes)
    )
    return found


def drawn(replies: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], list[ReplyAssessed]]:
    """Scores `(judges 2, passes 2, replies)` that mostly follow the reply, and the events that hold them."""
    random = np.random.default_rng(seed)
    truth = random.integers(1, 4, replies)
    moved = random.random((2, 2, replies)) < 0.2
    scores = np.where(moved, random.integers(1, 4, (2, 2, replies)), truth)
    events = [assessment([[(int(scores[j, p, i]), 0) for p in range(2)] for j in range(2)]) for i in range(replies)]
    return scores, events


def row(rows: Sequence[Agreement], name: str) -> Agreement:
    (found,) = [each for each in rows if each.name == name]
    return found


def test_judges_are_compared_pass_by_pass_and_each_with_its_own_passes() -> None:
    scores, events = drawn(40)
    found = judge_consistency(events, range(40))
    between = row(found.between, "depth")
    pairs = scores.transpose(0, 2, 1).reshape(2, -1).astype(float)
    assert (between.raters, between.n, between.clusters) == (2, 80, 40)
    assert between.alpha.value == pytest.approx(krippendorff_alpha(pairs, "ordinal"))
    assert between.raw.value == pytest.approx(raw_agreement(pairs))
    assert between.ac2.value == pytest.approx(gwet_ac2(pairs, [1, 2, 3], "ordinal"))
    assert [each.judge for each in found.within] == ["judge/0", "judge/1"]
    for judge, within in enumerate(found.within):
        own = row(within.rows, "depth")
        assert (own.raters, own.n, within.model) == (2, 40, f"model-{judge}")
        assert own.alpha.value == pytest.approx(krippendorff_alpha(scores[judge].astype(float), "ordinal"))


def test_intervals_cover_the_value_and_are_wider_for_dependent_replies() -> None:
    _, events = drawn(40)
    alone = row(judge_consistency(events, range(40)).between, "depth").alpha
    together = row(judge_consistency(events * 4, [*range(40)] * 4).between, "depth").alpha
    independent = row(judge_consistency(events * 4, range(160)).between, "depth").alpha
    widths = []
    for figure in (alone, together, independent):
        assert figure.value is not None
        assert figure.interval is not None
        assert figure.interval[0] < figure.value < figure.interval[1]
        widths.append(figure.interval[1] - figure.interval[0])
    assert widths[1] == pytest.approx(widths[0], rel=0.25), "four copies of a case tell no more than one"
    assert widths[2] < 0.7 * widths[1]


def test_where_all_ratings_are_on_one_level_alpha_is_unknown_and_the_rest_is_not() -> None:
    found = judge_consistency([assessment([[(3, 0)], [(3, 0)]])] * 9, range(9))
    for name in ("depth", "critical_flag"):
        figures = row(found.between, name)
        assert (figures.alpha.value, figures.why) == (None, "all ratings on one level")
        assert (figures.raw.value, figures.ac2.value) == (1.0, 1.0)
        assert figures.raw.interval is None, "an interval without width is no certainty"


def test_a_missing_mark_is_no_rating() -> None:
    events = [assessment([[(i % 3 + 1, 0)], [(i % 3 + 1, 0) if i else None]]) for i in range(9)]
    figures = row(judge_consistency(events, range(9)).between, "depth")
    assert (figures.n, figures.alpha.value) == (8, 1.0)


def test_too_few_units_give_nothing_and_few_cases_no_interval() -> None:
    _, events = drawn(4)
    one = row(judge_consistency(events[:1], [0]).within[0].rows, "depth")
    assert (one.alpha.value, one.raw.value, one.ac2.value, one.n) == (None, None, None, 1)
    assert one.why == "fewer than 2 to compare"
    few = row(judge_consistency(events, range(4)).between, "depth")
    assert few.raw.value is not None
    assert few.raw.interval is None


def test_one_judge_and_one_pass_have_nothing_to_agree_with() -> None:
    alone = judge_consistency([assessment([[(3, 0)]])] * 5, range(5))
    assert (alone.between, alone.within) == ([], [])
    assert judge_consistency([], []).between == []


def test_without_a_flag_in_the_rubric_there_is_no_row_for_it() -> None:
    events = [assessment([[(2, 0)], [(i % 3 + 1, 0)]], scales=[["depth", 1, 3]]) for i in range(6)]
    assert [each.name for each in judge_consistency(events, range(6)).between] == ["depth"]


def test_events_without_scales_are_read_on_the_levels_that_occur() -> None:
    events = [assessment([[(2, 1)], [(i % 2 + 2, 0)]], scales=[]) for i in range(8)]
    found = judge_consistency(events, range(8)).between
    assert [each.name for each in found] == ["depth", "critical_flag"]
    assert row(found, "depth").ac2.value == pytest.approx(gwet_ac2([[2] * 8, [2, 3] * 4], [2, 3], "ordinal"))
    assert row(found, "critical_flag").raw.value == 0.0
