"""Score distributions: the top is that of the scale, not the highest score that was seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from moot.deploy.analysis.brought import replies_of_table
from moot.deploy.analysis.judges import score_distributions_table
from moot.deploy.analysis.replies import Replies, strata
from moot.protocols.rubrics.assessed import AssessmentData

SCALES = (("depth", 1, 3), ("care", 1, 3), ("critical_flag", 0, 1))


def scored(tmp_path: Path, depth: list[int]) -> Replies:
    """Replies with these scores of depth, and 3 for care."""
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"score_depth": depth, "score_care": [3] * len(depth)}), path)
    return replies_of_table(path)


def tops(replies: Replies) -> dict[str, object]:
    table = score_distributions_table(replies, strata(replies))
    return {str(row["target"]): row["at_top"] for row in table.rows}


def test_the_worst_score_of_all_is_not_at_the_top(tmp_path: Path) -> None:
    replies = scored(tmp_path, [1] * 12)
    judged = AssessmentData(reply="r", role="reply", scales=SCALES)
    assert tops(replace(replies, assessments=[judged] * 12)) == {"depth": 0.0, "care": 1.0, "quality": 0.0}


def test_q_is_at_the_top_with_the_highest_of_every_dimension(tmp_path: Path) -> None:
    replies = scored(tmp_path, [3, 3, 3, 2] * 3)
    judged = AssessmentData(reply="r", role="reply", scales=SCALES)
    assert tops(replace(replies, assessments=[judged] * 12)) == {"depth": 0.75, "care": 1.0, "quality": 0.75}
    assert np.isfinite(replies.quality).all()


def test_without_a_scale_the_top_is_unknown(tmp_path: Path) -> None:
    assert set(tops(scored(tmp_path, [1, 2, 3] * 4)).values()) == {None}
