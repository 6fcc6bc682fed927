"""Users' tables: what is imported under which type, and what is refused, with one line of advice."""

from __future__ import annotations

import math
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from planted_replies import QUICK, analysed, changed, planted, row_of, rows_of

from moot.deploy.studies.analysis.analyze import analyze
from moot.deploy.studies.analysis.imported import replies_of_table
from moot.protocols.errors import ConfigError

N = 60
LOGPROB, TEXTS = pa.list_(pa.float32()), pa.list_(pa.string())


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Replies of one role on ten essays."""
    return planted(10, 7, {"constructor": 0.6}, tokens=16)


def _alternatives(table: pa.Table, k: int = 2) -> dict[str, Any]:
    listed = [[-0.5, -1.0] * len(tokens) for tokens in table["logprob"].to_pylist()]
    return {"alternatives": k, "alt_logprob": listed}


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"rol": "auditor"}, "'rol': did you mean 'role'"),
        ({"scores": 3.0}, "'scores': did you mean 'score_NAME'"),
        ({"logprob": -1.0}, "`logprob` is double"),
        ({"logprob": [["a"]] * N}, "`logprob` is list<element: string>"),
        ({"logprob": [[0.9, 0.8]] * N}, "`logprob` contains 0.9"),
        ({"token": "Claim"}, "`token` is string"),
        ({"token": [["Claim", ":"]] * N}, "row 0 has 2 tokens and"),
        ({"role": 0.5}, "`role` is double"),
        ({"temperature": "hot"}, "`temperature` is string"),
        ({"quality": [math.inf] * N}, "`quality` is inf in row 0"),
        ({"score_a": "good"}, "`score_a` is string"),
        ({"correct": 2}, "`correct`: "),
        ({"correct": "yes"}, "`correct` is string"),
        ({"flag": 2.0}, "`flag`: "),
        ({"confidence": 1.5}, "`confidence`: expected a number from 0 to 1, or null"),
        ({"confidence": "high"}, "`confidence` is string"),
        ({"alt_logprob": [[-1.0]] * N}, "`alt_logprob` needs `alternatives`"),
        ({"alternatives": 3, "alt_logprob": [[-1.0]] * N}, "row 0 has 1 alternatives for"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(
    columns: dict[str, Any], complaint: str, table: pa.Table, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        analysed(changed(table, **columns), tmp_path)
    said = str(refused.value)
    assert complaint in said
    assert said.startswith(f"--table {tmp_path / 'replies.parquet'}: ")
    assert "\n" not in said


def test_a_file_that_is_no_table_is_refused(table: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no Parquet at all\n")
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    pq.write_table(table.select(["case", "role"]), tmp_path / "neither.parquet")
    for name, complaint in (
        ("missing.parquet", "file"),
        ("notes.txt", "Parquet"),
        ("empty.parquet", "has no rows"),
        ("neither.parquet", "`score_NAME`"),
    ):
        with pytest.raises(ConfigError, match=name) as refused:
            analyze(table=tmp_path / name)
        assert complaint in str(refused.value)
        assert "\n" not in str(refused.value)


def test_alternatives_that_do_not_fit_the_vocabulary(table: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--vocabulary 2 .* 3 tokens"):
        analysed(changed(table, **_alternatives(table)), tmp_path, vocabulary=2)
    with pytest.raises(ConfigError, match=r"row 0 .* alternatives"):
        analysed(changed(table, **_alternatives(table, k=3)), tmp_path)
    with pytest.raises(ConfigError, match="`logprob`"):
        analysed(changed(table, **_alternatives(table)).drop_columns(["logprob"]), tmp_path)


def test_entropies_lie_between_their_bounds(table: pa.Table, tmp_path: Path) -> None:
    table = table.drop_columns(["flag", "correct"])
    with_alternatives = changed(table, **_alternatives(table))
    row = row_of(analysed(with_alternatives, tmp_path, vocabulary=1000), "entropies")
    assert row["n"] == N
    assert 0.0 < row["renormalised"] <= math.log(3)
    assert 0.0 < row["lower"] < row["upper"] < math.log(1000)
    unknown = analysed(with_alternatives, tmp_path)
    assert row_of(unknown, "entropies")["upper"] is None
    assert {each["signal"] for each in rows_of(unknown, "associations")} == {"logprob", "entropy", None}
    assert not rows_of(analysed(table, tmp_path), "entropies")


def _taken(table: pa.Table, folder: Path) -> str:
    """Everything that is taken in from a table, as text, so that NaN equals NaN."""
    pq.write_table(table, folder / "taken.parquet")
    replies = replies_of_table(folder / "taken.parquet")
    plain = {each.name: getattr(replies, each.name) for each in fields(replies)}
    tokens = plain.pop("logprobs")
    with np.printoptions(threshold=sys.maxsize):
        return repr(plain | {"logprobs": [tokens.row(number).tolist() for number in range(len(tokens))]})


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float16()), pa.list_(pa.float32(), 8)],
    ids=str,
)
def test_lists_of_any_float_and_of_fixed_size(kind: pa.DataType, table: pa.Table, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = [None if row == 3 else (-random.exponential(size=8)).astype(np.float16) for row in range(N)]
    same = [None if row is None else row.astype(np.float32) for row in rows]
    given = rows if kind.value_type == pa.float16() else same
    one, other = (changed(table, logprob=pa.array(*each)) for each in ((same, LOGPROB), (given, kind)))
    assert _taken(one, tmp_path) == _taken(other, tmp_path)


def test_what_pandas_writes_is_taken_in(table: pa.Table, tmp_path: Path) -> None:
    """Categories for texts, a column with the numbers of the rows that were kept, columns of nothing but None."""
    frame = table.to_pandas()
    frame["role"] = frame["role"].astype("category")
    frame["correct"] = None
    frame["extra"] = range(len(frame))
    kept = frame[frame["extra"] % 3 > 0].drop(columns=["extra", "flag"])
    kept.to_parquet(tmp_path / "pandas.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "pandas.parquet").names
    found = analyze(table=tmp_path / "pandas.parquet", settings=QUICK)
    assert (found.facts.replies, found.facts.scored) == (2 * N // 3, 0)
    assert row_of(found, "strata")["role"] == "constructor"


@pytest.mark.parametrize("column", ["logprob", "token", "role", "correct", "flag", "quality", "score_a", "temperature"])
def test_a_column_of_nulls_says_nothing(column: str, table: pa.Table, tmp_path: Path) -> None:
    typed = {"logprob": LOGPROB, "token": TEXTS, "role": pa.string()}.get(column, pa.float64())
    with_nulls = changed(table, **{column: pa.nulls(N)})
    assert with_nulls.schema.field(column).type == pa.null()
    assert _taken(with_nulls, tmp_path) == _taken(changed(table, **{column: pa.nulls(N, typed)}), tmp_path)


def test_q_is_the_sum_of_the_scores_and_0_when_flagged(table: pa.Table, tmp_path: Path) -> None:
    scores = zip(*(table[f"score_{name}"].to_pylist() for name in "abc"), strict=True)
    q = [0.0 if flag else sum(each) for each, flag in zip(scores, table["flag"].to_pylist(), strict=True)]
    assert _taken(changed(table, quality=q), tmp_path) == _taken(table, tmp_path)
    share = [0.5 if flag else 0.4 for flag in table["flag"].to_pylist()]
    assert _taken(changed(table, flag=share), tmp_path) == _taken(table, tmp_path)


def test_replies_are_grouped_by_case_where_there_is_no_group(table: pa.Table, tmp_path: Path) -> None:
    plain = table.select(["case", "group", "score_a"])
    assert analysed(plain, tmp_path).facts.groups == 10
    assert analysed(plain.drop_columns(["group"]), tmp_path).facts.groups == N
    assert analysed(plain.drop_columns(["group", "case"]), tmp_path).facts.groups == N


def test_stated_confidences_are_scored_as_they_were_stated(tmp_path: Path) -> None:
    stated, right = [0.9, 0.2, 0.6, None, 0.8, 0.7] * 5, [True, False, True, True, False, None] * 5
    rows = [
        {"case": f"c{i}", "confidence": c, "correct": r} for i, (c, r) in enumerate(zip(stated, right, strict=True))
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    (row,) = analyze(table=tmp_path / "t.parquet", settings=QUICK).table("stated_confidence").to_pylist()
    assert (row["n"], row["accuracy"]) == (20, 0.5)
    assert row["confidence"] == pytest.approx((0.9 + 0.2 + 0.6 + 0.8) / 4)
    assert row["brier"] == pytest.approx((0.1**2 + 0.2**2 + 0.4**2 + 0.8**2) / 4)
    assert row["brier_low"] < row["brier"] < row["brier_high"]
    assert row["brier_constant"] == 0.25


def test_the_ablation_ranks_no_feature_that_top_features_leaves_out(table: pa.Table, tmp_path: Path) -> None:
    """With three flagged replies of sixty neither does; before, the ablation named a best feature of theirs."""
    flags = [number < 3 for number in range(N)]
    found = analysed(changed(table, flag=flags), tmp_path)
    assert {row["value_low"] for row in rows_of(found, "associations", target="critical flag")} == {None}
    assert not rows_of(found, "top_features", target="critical flag")
    ablated = rows_of(found, "ablation", target="critical flag")
    assert ablated
    assert {(row["features"], row["best_feature"]) for row in ablated} == {(0, None)}
    assert any(row["features"] for row in rows_of(found, "ablation", target="quality"))
