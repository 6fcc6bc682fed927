"""Intervals around how often the signals disagree: those of whole clusters, and none where nothing can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import moot
from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.significance import wilson_interval

SETTINGS = moot.AnalysisSettings(resamples=50, permutations=100)
NAME = "good reasoning, wrong answer"


def counted(path: Path, quality: list[float], correct: list[bool], case: list[str] | None = None) -> dict[str, Any]:
    """The row of one divergence."""
    mu = -0.1 - 0.01 * np.arange(len(quality))
    columns = {"logprob": mu[:, np.newaxis].tolist(), "quality": quality, "score_a": [2] * len(quality)}
    cases = [str(number) for number in range(len(quality))] if case is None else case
    columns |= {"flag": [False] * len(quality), "correct": correct, "case": cases}
    pq.write_table(pa.table(columns), path)
    rows = moot.analyze(table=path, settings=SETTINGS).table("divergences").to_pylist()
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


@pytest.mark.parametrize("clusters", [1, 4, 5])
def test_fewer_than_five_clusters_give_no_interval(clusters: int, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    quality, correct = random.choice([3.0, 9.0], 60).tolist(), (random.random(60) < 0.5).tolist()
    case = [str(number % clusters) for number in range(60)]
    row = counted(tmp_path / "t.parquet", quality, correct, case)
    ends = [row[f"{name}_{end}"] for name in ("prevalence", "excess") for end in ("low", "high")]
    assert all((end is not None) == (clusters == 5) for end in ends)
    assert 0.0 < row["prevalence"] < 1.0


def test_intervals_are_percentiles_of_drawn_clusters(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    quality, correct = random.choice([3.0, 9.0], 90), random.random(90) < 0.5
    case = [f"{number // 3:02d}" for number in range(90)]
    row = counted(tmp_path / "t.parquet", quality.tolist(), correct.tolist(), case)
    first, second = quality >= 8.0, ~correct
    drawn = [np.repeat(np.arange(90), weights) for weights in cluster_weights(case, 5 * SETTINGS.resamples)]
    shares = np.array([(first[rows] & second[rows]).mean() for rows in drawn])
    excess = shares - [first[rows].mean() * second[rows].mean() for rows in drawn]
    for name, values in (("prevalence", shares), ("excess", excess)):
        expected = np.percentile(values, [2.5, 97.5]).tolist()
        assert [row[f"{name}_low"], row[f"{name}_high"]] == pytest.approx(expected)


def test_a_count_of_none_says_nothing_of_how_far_it_is_from_independence(tmp_path: Path) -> None:
    """Both conditions are there, never together: the resamples cannot hold what was not seen once."""
    row = counted(tmp_path / "t.parquet", [9.0] * 6 + [3.0] * 6, [True] * 6 + [False] * 6)
    assert (row["count"], row["independent"], row["excess"]) == (0, 0.25, -0.25)
    assert (row["excess_low"], row["excess_high"]) == (None, None)
