"""What a summary says of scores and short answers: by trait, beside the raters, and never over all of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from not_none import not_none
from planted_records import PlantedSession, Printed
from sklearn.metrics import cohen_kappa_score

from moot.deploy.results.figures.comparison import compare
from moot.deploy.results.figures.raters import MEAN, ScorePair, TraitScores
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.show import show
from moot.metrics.weighted_kappa import quadratic_weighted_kappa
from moot.protocols.case import Criterion, Reference

IDEAS = Criterion(trait="Ideas", lowest=0, highest=3, guide="g", assignment="Write.")
STYLE = Criterion(trait="Style", lowest=0, highest=3, guide="g", assignment="Write.")
SCORES = ("0", "1", "2", "3")


def scored(
    session: PlantedSession,
    essay: str,
    criterion: Criterion,
    answer: str | None,
    ratings: Sequence[float | None],
    **how: Any,
) -> None:
    """A finished case of one trait of one essay."""
    case_id = f"{essay}-{criterion.trait}"
    accepted = tuple(dict.fromkeys(f"{rating:.0f}" for rating in ratings if rating is not None))
    reference = Reference(scoring="score", accepted=accepted, ratings=tuple(ratings), group=essay)
    session.case(case_id, accepted[0] if accepted else None, labels=SCORES, criterion=criterion, reference=reference)
    session.verdict(case_id, answer, **how)


def pair(found: TraitScores, first: str, second: str) -> ScorePair:
    (only,) = [each for each in found.pairs if (each.first, each.second) == (first, second)]
    return only


@pytest.fixture
def essays(session: PlantedSession) -> tuple[Path, Any]:
    """40 essays, two traits; rater 3 scored one in five, and only the style."""
    random = np.random.default_rng(2)
    drawn = random.integers(0, 4, (40, 3))
    drawn[:, 1] = np.where(random.random(40) < 0.6, drawn[:, 0], drawn[:, 1])
    for essay, (verdict, one, two) in enumerate(drawn):
        scored(session, f"e{essay:02d}", IDEAS, str(verdict), (float(one), float(two)))
        third = float(one) if essay % 5 == 0 else None
        scored(session, f"e{essay:02d}", STYLE, str(one), (float(one), float(two), third))
    return session.plant(), drawn


def test_kappa_is_by_trait_and_rater(essays: tuple[Path, Any]) -> None:
    folder, drawn = essays
    found = not_none(summarise(folder).scores)
    ideas, style = found
    assert [(each.trait, each.lowest, each.highest, each.cases) for each in found] == [
        ("Ideas", 0, 3, 40), ("Style", 0, 3, 40),
    ]  # fmt: skip
    for name, column in (("rater 1", 1), ("rater 2", 2)):
        expected = cohen_kappa_score(drawn[:, 0], drawn[:, column], weights="quadratic")
        figures = pair(ideas, "verdict", name)
        assert figures.qwk == pytest.approx(expected)
        assert figures.exact == pytest.approx((drawn[:, 0] == drawn[:, column]).mean())
        assert figures.adjacent == pytest.approx((abs(drawn[:, 0] - drawn[:, column]) <= 1).mean())
    mean = pair(ideas, "verdict", MEAN)
    assert mean.qwk == pytest.approx(quadratic_weighted_kappa(drawn[:, 0], drawn[:, 1:].mean(axis=1), 0, 3))
    assert (mean.exact, mean.exact_interval, mean.adjacent) == (None, None, None)
    raters = pair(ideas, "rater 1", "rater 2")
    assert raters.qwk == pytest.approx(cohen_kappa_score(drawn[:, 1], drawn[:, 2], weights="quadratic"))
    assert [(each.first, each.second) for each in style.pairs][-3:] == [
        ("rater 1", "rater 2"), ("rater 1", "rater 3"), ("rater 2", "rater 3"),
    ]  # fmt: skip
    assert (pair(style, "verdict", "rater 1").qwk, pair(style, "verdict", "rater 1").qwk_interval) == (1.0, None)
    assert pair(style, "verdict", "rater 3").n == 8
    assert pair(style, "verdict", MEAN).n == 40


def test_cases_of_one_group_are_drawn_together(session: PlantedSession) -> None:
    """Each essay four times under one group is no more evidence than once: the intervals are equal."""
    widths = []
    for copies in (1, 4):
        one, random = session.new(), np.random.default_rng(6)
        for essay in range(25):
            rating, verdict = random.integers(0, 4, 2)
            for copy in range(copies):
                reference = Reference(
                    scoring="score", accepted=(str(rating),), ratings=(float(rating),), group=f"e{essay:02d}"
                )
                name = f"e{essay:02d}-{copy}"
                one.case(name, str(rating), labels=SCORES, criterion=IDEAS, reference=reference)
                one.verdict(name, str(verdict))
        figures = not_none(summarise(one.plant()).scores)[0].pairs[0]
        low, high = not_none(figures.qwk_interval)
        assert low < not_none(figures.qwk) < high
        widths.append(high - low)
    assert widths[1] == pytest.approx(widths[0], rel=1e-9)


def test_what_is_missing_agrees_with_nobody(session: PlantedSession) -> None:
    scored(session, "a", IDEAS, None, (1.0, 2.0))
    scored(session, "b", IDEAS, "3", (None, None))
    scored(session, "c", IDEAS, "2", (None, 2.0))
    scored(session, "d", IDEAS, None, (3.0, 3.0), how="failed", failure="quorum_failed")
    found = summarise(session.plant())
    (ideas,) = not_none(found.scores)
    assert (ideas.cases, ideas.without_score) == (3, 1)
    assert pair(ideas, "verdict", "rater 2").n == 1
    assert pair(ideas, "verdict", "rater 1").qwk is None
    assert pair(ideas, "rater 1", "rater 2").exact is None
    assert (found.accuracy, found.scored, found.answered) == (0.5, 2, 1)


def test_the_interval_of_cases_that_are_about_one_text_is_over_texts(essays: tuple[Path, Any]) -> None:
    found = summarise(essays[0])
    low, high = not_none(found.accuracy_interval)
    assert 0.0 < low < not_none(found.accuracy) < high < 1.0
    assert not_none(found.scored_groups) < found.scored


def test_a_mean_of_raters_is_that_of_at_least_two(session: PlantedSession) -> None:
    for essay, ratings in enumerate([(1.0, 2.0), (2.0, 3.0), (0.0, None), (None, 3.0)]):
        scored(session, f"e{essay}", IDEAS, str(essay), ratings)
    found = not_none(summarise(session.plant()).scores)
    (ideas,) = found
    assert [pair(ideas, "verdict", name).n for name in ("rater 1", "rater 2", MEAN)] == [3, 3, 2]


def test_parts_of_a_task_are_never_pooled(session: PlantedSession, printed: Printed) -> None:
    for part, verdicts in (("set-1", "0123"), ("set-2", "3333")):
        for essay, verdict in enumerate(verdicts):
            rating = float(essay)
            reference = Reference(scoring="score", accepted=(str(essay),), ratings=(rating,), part=part)
            name = f"{part}-{essay}"
            session.case(name, str(essay), labels=SCORES, criterion=IDEAS, reference=reference)
            session.verdict(name, verdict)
    folder = session.plant()
    found = summarise(folder)
    assert [(each.part, each.cases, pair(each, "verdict", "rater 1").qwk) for each in not_none(found.scores)] == [
        ("set-1", 4, 1.0), ("set-2", 4, 0.0),
    ]  # fmt: skip
    assert [(each.part, each.accuracy, each.scored) for each in found.accuracy_by_part or ()] == [
        ("set-1", 1.0, 4), ("set-2", 0.25, 4),
    ]  # fmt: skip
    text = " ".join(printed(show, folder).split())
    assert "a rater's score given, set-2 25.0 %" in text
    assert "set-2: Ideas, 0-3" in text
    assert compare([folder, folder]).warnings == [
        "accuracy is over all parts of the task together: `moot show RUN` has it part by part"
    ]


def answered(session: PlantedSession, case_id: str, answer: str | None, *accepted: str) -> None:
    reference = Reference(scoring="short answer", accepted=accepted)
    session.case(case_id, next(iter(accepted), None), labels=None, reference=reference)
    session.verdict(case_id, answer)


def test_short_answers(session: PlantedSession, printed: Printed) -> None:
    answered(session, "a", "the 1901", "Sir Edmund Barton", "1901")
    answered(session, "b", "edmund barton", "Sir Edmund Barton")
    answered(session, "c", "nobody", "Sir Edmund Barton")
    answered(session, "d", None, "x")
    answered(session, "e", "x")
    folder = session.plant()
    found = not_none(summarise(folder).short_answers)
    assert found.n == 4
    assert found.exact_match == pytest.approx(1 / 4)
    assert found.token_f1 == pytest.approx((1 + 0.8 + 0 + 0) / 4)
    assert found.token_f1_interval is None, "of four cases"
    assert "also accepted" in printed(show, folder, "a")
