"""Score distributions: the top is that of the scale, what passes is what each rubric says; else nobody knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from planted_replies import QUICK

import moot
from moot.deploy.analysis.brought import replies_of_table
from moot.deploy.analysis.judges import score_distributions_table
from moot.deploy.analysis.replies import strata
from moot.protocols.rubrics.assessed import AssessmentData

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
        replies = replace(replies, assessments=[AssessmentData(reply="r", role="reply", scales=scales)] * 12)
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
