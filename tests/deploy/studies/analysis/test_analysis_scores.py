"""Score distributions: the top is that of the scale, what passes is what each rubric says; else nobody knows. And
intervals around how often the signals disagree: those of whole clusters, and none where nothing can be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from planted_replies import QUICK

import moot
from moot.deploy.results.figures.judged_replies import strata
from moot.deploy.studies.analysis.imported import replies_of_table
from moot.deploy.studies.analysis.judges import score_distributions_table
from moot.metrics.jackknife import LEAST_CLUSTERS, coefficient_interval, share_interval
from moot.metrics.significance import wilson_interval
from moot.protocols.rubrics.events import ReplyAssessed

SCALES = (("depth", 1, 3), ("care", 1, 3), ("critical_flag", 0, 1))


@pytest.mark.parametrize(
    ("depth", "scales", "tops"),
    [
        ([1] * 12, SCALES, {"depth": 0.0, "care": 1.0, "quality": 0.0}),
        ([3, 3, 3, 2] * 3, SCALES, {"depth": 0.75, "care": 1.0, "quality": 0.75}),
        ([1, 2, 3] * 4, (), {"depth": None, "care": None, "quality": None}),
    ],
)
def test_at_the_top_is_what_has_the_highest_score_of_the_scale(
    depth: list[int], scales: tuple[tuple[str, int, int], ...], tops: dict[str, float | None], tmp_path: Path
) -> None:
    """Not what has the highest that was seen; Q is there with the highest of every dimension."""
    pq.write_table(pa.table({"score_depth": depth, "score_care": [3] * 12}), tmp_path / "scores.parquet")
    replies = replies_of_table(tmp_path / "scores.parquet")
    if scales:
        replies = replace(replies, assessments=[ReplyAssessed(reply="r", role="reply", scales=list(scales))] * 12)
    rows = score_distributions_table(replies, strata(replies)).rows
    assert {row["target"]: row["at_top"] for row in rows} == tops
    assert {row["passed"] for row in rows} == {None}, "a table of one's own names no rubric"


@pytest.mark.parametrize("least", [1, 3])
def test_a_dimension_is_passed_by_its_own_rubrics_bar(tmp_path: Path, least: int) -> None:
    dimensions = {
        name: {"question": f"How is the {name}?", "levels": dict.fromkeys(range(5), "so"), "passes_at": bar}
        for name, bar in (("support", least), ("clarity", None))
    }
    rubric = {"name": "mine", "instructions": "Judge.", "dimensions": dimensions, "flag": "it invents something"}
    found = moot.judge("sample-replies", rubric=rubric, out=tmp_path / "run")
    rows = moot.analyze(tmp_path / "run", settings=QUICK).table("score_distributions").to_pylist()
    share = {row["target"]: row["passed"] for row in rows}
    supported = [(each.means["support"], each.flag) for each in found.verdicts if each.means["support"] is not None]
    good = [score >= least and flag == 0.0 for score, flag in supported]
    assert 0 < sum(good) < len(good)
    assert share["support"] == pytest.approx(sum(good) / len(good))
    assert (share["clarity"], share["quality"], share["critical flag"]) == (None, None, None)


NAME = "good reasoning, wrong answer"


def counted(path: Path, quality: list[float], correct: list[bool], case: list[str] | None = None) -> dict[str, Any]:
    """The row of one divergence."""
    mu = -0.1 - 0.01 * np.arange(len(quality))
    columns = {"logprob": mu[:, np.newaxis].tolist(), "quality": quality, "score_a": [2] * len(quality)}
    cases = [str(number) for number in range(len(quality))] if case is None else case
    columns |= {"flag": [False] * len(quality), "correct": correct, "case": cases}
    pq.write_table(pa.table(columns), path)
    rows = moot.analyze(table=path, settings=QUICK).table("divergences").to_pylist()
    (row,) = [row for row in rows if row["divergence"] == NAME]
    return dict(row)


@pytest.mark.parametrize(("quality", "correct", "count"), [(3.0, True, 0), (9.0, False, 12)])
def test_none_or_all_of_single_replies_has_wilsons_interval_and_of_clustered_ones_none(
    quality: float, correct: bool, count: int, tmp_path: Path
) -> None:
    row = counted(tmp_path / "t.parquet", [quality] * 12, [correct] * 12)
    wilson = wilson_interval(count, 12)
    assert (row["count"], row["n"]) == (count, 12)
    assert (row["prevalence_low"], row["prevalence_high"]) == pytest.approx((wilson.low, wilson.high))
    assert (row["excess_low"], row["excess_high"]) == (None, None)
    pairs = [str(number // 2) for number in range(12)]
    row = counted(tmp_path / "t.parquet", [quality] * 12, [correct] * 12, pairs)
    assert (row["prevalence"], row["prevalence_low"], row["prevalence_high"]) == (count / 12, None, None)


@pytest.mark.parametrize("clusters", [1, LEAST_CLUSTERS - 1, LEAST_CLUSTERS])
def test_too_few_clusters_give_no_interval(clusters: int, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    quality, correct = random.choice([3.0, 9.0], 60).tolist(), (random.random(60) < 0.5).tolist()
    case = [str(number % clusters) for number in range(60)]
    row = counted(tmp_path / "t.parquet", quality, correct, case)
    ends = [row[f"{name}_{end}"] for name in ("prevalence", "excess") for end in ("low", "high")]
    assert all((end is not None) == (clusters == LEAST_CLUSTERS) for end in ends)
    assert 0.0 < row["prevalence"] < 1.0


def test_intervals_are_of_clusters_left_out(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    quality, correct = random.choice([3.0, 9.0], 90), random.random(90) < 0.5
    case = np.arange(90) // 3
    row = counted(tmp_path / "t.parquet", quality.tolist(), correct.tolist(), [f"{number:02d}" for number in case])
    first, second = quality >= 8.0, ~correct
    kept = [case != number for number in range(30)]
    shares = np.array([(first[rows] & second[rows]).mean() for rows in kept])
    excess = shares - [first[rows].mean() * second[rows].mean() for rows in kept]
    assert (row["prevalence_low"], row["prevalence_high"]) == pytest.approx(share_interval(shares, row["prevalence"]))
    expected = coefficient_interval(excess, row["excess"])
    assert [row["excess_low"], row["excess_high"]] == pytest.approx(list(map(float, expected)))


def test_a_count_of_none_says_nothing_of_how_far_it_is_from_independence(tmp_path: Path) -> None:
    """Both conditions are there, never together: no part of the data has what was not seen once."""
    row = counted(tmp_path / "t.parquet", [9.0] * 6 + [3.0] * 6, [True] * 6 + [False] * 6)
    assert (row["count"], row["independent"], row["excess"]) == (0, 0.25, -0.25)
    assert (row["excess_low"], row["excess_high"]) == (None, None)
