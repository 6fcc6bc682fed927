"""What passes is what each rubric says, dimension by dimension; where it says nothing, nobody knows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import moot
from moot.deploy.analysis.settings import AnalysisSettings

QUICK = AnalysisSettings(permutations=100, resamples=50)
LEVELS = {score: f"level {score}" for score in range(5)}


def rubric(**passes_at: int | None) -> dict[str, object]:
    dimensions = {
        name: {"question": f"How is the {name}?", "levels": LEVELS, "passes_at": least}
        for name, least in passes_at.items()
    }
    return {"name": "mine", "instructions": "Judge.", "dimensions": dimensions, "flag": "it invents something"}


def passed(analysis: moot.Analysis) -> dict[str, float | None]:
    rows = analysis.table("score_distributions").to_pylist()
    return {row["target"]: row["passed"] for row in rows}


@pytest.mark.parametrize("least", [1, 3])
def test_a_dimension_is_passed_by_its_own_rubrics_bar(tmp_path: Path, least: int) -> None:
    found = moot.judge("sample-replies", rubric=rubric(support=least, clarity=None), out=tmp_path / "run")
    share = passed(moot.analyze(tmp_path / "run", settings=QUICK))
    good = [each.means["support"] >= least and each.flag == 0.0 for each in found.verdicts if each.means["support"]
            is not None]  # fmt: skip
    assert 0 < sum(good) < len(good)
    assert share["support"] == pytest.approx(sum(good) / len(good))
    assert (share["clarity"], share["quality"], share["critical flag"]) == (None, None, None)


def test_nobody_knows_what_passes_in_a_table_of_ones_own(tmp_path: Path) -> None:
    pq.write_table(pa.table({"score_depth": [1.0, 2.0, 3.0] * 5}), tmp_path / "mine.parquet")
    assert passed(moot.analyze(table=tmp_path / "mine.parquet", settings=QUICK))["depth"] is None
