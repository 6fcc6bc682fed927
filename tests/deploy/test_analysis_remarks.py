"""What an analysis says of data that are too few, and which way confidence points, where a reader looks first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from moot.deploy.analysis.analysis import Analysis, analyze
from moot.deploy.analysis.settings import AnalysisSettings
from moot.deploy.analysis.show import FEW_GROUPS, facts_in_words, show_analysis

QUICK = AnalysisSettings(permutations=100, resamples=50)


def analysed(folder: Path, roles: Sequence[str], *, unsure: Sequence[str] = (), silent: Sequence[str] = ()) -> Analysis:
    """Replies of these roles, a case each: the surer, the better; the worse for those of `unsure`."""
    draw = np.random.default_rng(4)
    rows = []
    for role in roles:
        sure = float(draw.uniform(0.1, 1.0))
        logprob = None if role in silent else (-sure * draw.uniform(0.9, 1.1, 60)).tolist()
        score = float(draw.normal(sure if role in unsure else -sure, 0.2))
        rows.append({"role": role, "logprob": logprob, "score_depth": score})
    pq.write_table(pa.Table.from_pylist(rows), folder / "replies.parquet")
    return analyze(table=folder / "replies.parquet", settings=QUICK)


def printed(found: Analysis, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What a terminal shows from the table of top features on."""
    show_analysis(found, folder / "index.html", console=Console(width=120))
    lines = capsys.readouterr().out.splitlines()
    return lines[next(place for place, line in enumerate(lines) if "Top features for each target" in line) :]


def test_a_terminal_says_which_way_confidence_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = analysed(tmp_path, ["solver"] * 40 + ["critic"] * 40, unsure=["critic"])
    lines = printed(found, tmp_path, capsys)
    solver, critic = (lines[lines.index(role) + 1 :][:2] for role in ("solver", "critic"))
    assert "confident ->" in solver[0]
    assert " better " in solver[1]
    assert " worse " in critic[1]
    assert not any("[" in line for line in solver + critic), "an interval that knows nothing of the choice"
    best = found.table("top_features").to_pylist()[0]
    assert best["direction"] == "confident -> better"
    assert best["value_low"] < best["value"] < best["value_high"]


def test_a_stratum_says_what_it_is_too_small_for(tmp_path: Path) -> None:
    roles = ["few"] * 9 + ["some"] * 12 + ["silent"] * 12 + ["enough"] * 30
    rows = analysed(tmp_path, roles, silent=["silent"]).table("strata").to_pylist()
    assert {row["role"]: row["remark"] for row in rows} == {
        "few": "too few replies",
        "some": "too few to rank features",
        "silent": "no log-probabilities",
        "enough": "",
    }


def test_intervals_of_few_cases_are_said_to_be_too_narrow(tmp_path: Path) -> None:
    few, enough = (
        [*facts_in_words(analysed(tmp_path, ["a"] * n, silent=["a"]).facts)] for n in (FEW_GROUPS - 1, FEW_GROUPS)
    )
    assert [line for line in few if "too narrow" in line] == [
        "29 independent cases: below about 30 the intervals are too narrow"
    ]
    assert not [line for line in enough if "too narrow" in line]
