"""Incomplete replies are counted and reported, and poison no figure: undefined values are unknown, never 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from planted_replies import analysed, changed, planted, row_of, rows_of, shown
from scipy.stats import spearmanr

from moot.deploy.studies.analysis.analyze import Analysis
from moot.metrics.jackknife import LEAST_CLUSTERS

N = 120
TARGETS = ("flag", "correct")
"""What is left out of a table where nothing is asked about it: each target has its own hundreds of associations."""


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Replies of one role on 20 essays, nothing odd about them."""
    return planted(20, 7, {"constructor": 0.6}, tokens=16)


def _words(found: Analysis) -> str:
    return " ".join(shown(found).split())


def test_without_logprobs_a_reply_stays_in_the_scores(table: pa.Table, tmp_path: Path) -> None:
    logprobs = table["logprob"].to_pylist()
    found = analysed(changed(table, logprob=[None] * 40 + logprobs[40:]), tmp_path)
    assert (found.facts.replies, found.facts.with_logprobs, found.facts.judged) == (N, 80, N)
    assert "40 replies without log-probabilities: left out of every figure about confidence" in _words(found)
    pairs = {row["pair"]: row["n"] for row in rows_of(found, "signal_pairs")}
    assert (pairs["(Q, mu)"], pairs["(correct, mu)"], pairs["(correct, Q)"], pairs["(Q, length)"]) == (80, 80, N, 80)
    assert {row["n"] for row in rows_of(found, "score_distributions")} == {N}
    assert row_of(found, "divergences", divergence="confident but weak")["n"] == 80
    assert row_of(found, "divergences", divergence="good reasoning, wrong answer")["n"] == N
    assert row_of(found, "strata")["with_logprobs"] == 80
    kept = table.slice(40).to_pylist()
    quality = [0.0 if row["flag"] else row["score_a"] + row["score_b"] + row["score_c"] for row in kept]
    value = row_of(found, "associations", target="quality", feature="logprob.full.mean")["value"]
    assert value == pytest.approx(spearmanr(quality, [np.mean(row["logprob"]) for row in kept]).statistic)


def test_odd_tokens_exclude_only_the_windows_with_them(table: pa.Table, tmp_path: Path) -> None:
    logprobs = table["logprob"].to_pylist()
    odd = [[], [-1.0], [-math.inf, *logprobs[2]], [*logprobs[3], -9999.0], [math.nan, *logprobs[4]]]
    found = analysed(changed(table, logprob=[*odd, *logprobs[5:]]), tmp_path)
    facts = found.facts
    assert (facts.with_logprobs, facts.empty, facts.one_token, facts.unknown_tokens) == (N, 1, 1, 3)
    words = _words(found)
    for said in (
        "1 reply without a token: no features",
        "1 reply of one token: no slope",
        "3 tokens without a valid log-probability (not finite, or a vendor's -9999)",
    ):
        assert said in words
    n = {row["feature"]: row["n"] for row in rows_of(found, "associations", target="quality")}
    assert n["logprob.full.mean"] == N - 4, "the empty reply and the three unknown tokens"
    assert n["logprob.full.slope"] == N - 5, "nor has the reply of one token a slope"
    assert n["logprob.first-3.mean"] == N - 4, "the tokens -inf and NaN come first, and two replies are too short"
    assert n["logprob.last-3.mean"] == N - 3, "the token -9999 comes last"
    assert n["length"] == N - 1
    values = [row["value"] for row in rows_of(found, "associations", target="quality", signal="logprob")]
    assert all(value is None or -1.0 <= value <= 1.0 for value in values)
    grid = row_of(found, "trajectory_percent", percent=50)
    assert grid["n"] == N - 1
    assert -9.0 < grid["mean"] < 0.0
    assert -9.0 < row_of(found, "trajectory_percent", percent=0)["mean"] < 0.0


def test_a_target_that_does_not_vary_has_no_association(table: pa.Table, tmp_path: Path) -> None:
    found = analysed(changed(table, quality=9.0, correct=True, flag=False), tmp_path)
    for target in ("quality", "correct", "critical flag"):
        rows = rows_of(found, "associations", target=target)
        assert len(rows) == 153
        for row in rows:
            names = ("value", "value_low", "value_high", "second", "p", "q", "max_p", "folded", "within_openings")
            assert [row[name] for name in names] == [None] * len(names)
            assert row["direction"] == ""
        assert max(row["n"] for row in rows) == N
        assert not rows_of(found, "top_features", target=target)
    assert row_of(found, "associations", target="a", feature="logprob.full.mean")["value"] is not None
    pair = row_of(found, "signal_pairs", pair="(Q, mu)")
    assert (pair["n"], pair["pearson"], pair["spearman"], pair["p"]) == (N, None, None, None)
    assert f"(Q, mu) {N} - - -" in _words(found)
    assert not rows_of(found, "correctness")


def test_a_stratum_with_few_replies_is_named_and_left_alone(table: pa.Table, tmp_path: Path) -> None:
    found = analysed(changed(table, role=["auditor"] * 9 + ["constructor"] * (N - 9)), tmp_path)
    for name in ("associations", "signal_pairs", "score_distributions"):
        assert {row["role"] for row in rows_of(found, name)} == {"constructor"}, name
    assert not rows_of(found, "role_differences")
    assert "9 9 6.22 0.667 too few replies" in _words(found)
    roles = ["auditor"] * 10 + ["constructor"] * (N - 10)
    ten = analysed(changed(table.drop_columns([*TARGETS]), role=roles), tmp_path)
    assert {row["role"] for row in rows_of(ten, "associations")} == {"constructor", "auditor"}


def test_a_feature_of_few_replies_is_not_ranked(table: pa.Table, tmp_path: Path) -> None:
    """Of 29 replies there is a long window; by chance it would go best with something."""
    logprobs = table["logprob"].to_pylist()
    long = [(each * 5)[:50] for each in logprobs[:29]]
    found = analysed(changed(table, logprob=long + logprobs[29:]), tmp_path)
    row = row_of(found, "associations", target="quality", feature="logprob.first-50.max")
    assert row["n"] == 29
    assert row["p"] is not None
    assert row["max_p"] is None
    assert not [top for top in rows_of(found, "top_features") if top["n"] < 30]


@pytest.mark.parametrize(
    ("dropped", "targets"),
    [
        (["flag", "correct"], {"a", "b", "c", "quality"}),
        (["flag", "score_a", "score_b", "score_c"], {"correct"}),
        (["correct", "score_a", "score_b", "score_c"], {"critical flag"}),
        (["correct", "flag", "score_a", "score_b", "score_c"], set()),
    ],
)
def test_targets_that_are_not_there_are_not_made_up(
    dropped: list[str], targets: set[str], table: pa.Table, tmp_path: Path
) -> None:
    found = analysed(table.drop_columns(dropped), tmp_path)
    assert {row["target"] for row in rows_of(found, "associations")} == targets
    assert found.facts.scored == (0 if "correct" in dropped else N)
    assert found.facts.judged == (0 if "score_a" in dropped and "flag" in dropped else N)
    if not targets:
        assert not rows_of(found, "signal_pairs")
        assert rows_of(found, "phases")
    assert shown(found, "json")


def test_scores_without_tokens(table: pa.Table, tmp_path: Path) -> None:
    found = analysed(table.drop_columns(["logprob"]), tmp_path)
    assert (found.facts.with_logprobs, found.facts.judged) == (0, N)
    tables = {name for name, each in found.tables.items() if each.rows}
    assert tables == {"strata", "signal_pairs", "divergences", "divergence_cases", "score_distributions"}
    assert [row["pair"] for row in rows_of(found, "signal_pairs")] == ["(correct, Q)"]
    assert [row["divergence"] for row in rows_of(found, "divergences")] == ["good reasoning, wrong answer"]
    assert f"{N} replies without log-probabilities" in _words(found)
    assert [name for name in found.figures if found.figure(name) is not None] == ["score_distributions", "divergences"]


def test_a_reply_judged_in_part_has_no_quality(table: pa.Table, tmp_path: Path) -> None:
    """Unless it is flagged: then Q is 0 whatever the scores."""
    scores = [None] * 20 + table["score_a"].to_pylist()[20:]
    found = analysed(changed(table.drop_columns(["correct"]), score_a=scores), tmp_path)
    flagged = sum(table["flag"].to_pylist()[:20])
    assert flagged == 3
    assert found.facts.judged == N
    quality, a = (row_of(found, "score_distributions", target=name) for name in ("quality", "a"))
    assert (a["n"], a["missing"]) == (N - 20, 20)
    assert (quality["n"], quality["missing"]) == (N - 20 + flagged, 20 - flagged)
    assert row_of(found, "signal_pairs", pair="(Q, mu)")["n"] == N - 20 + flagged


@pytest.mark.parametrize(
    ("column", "values", "divergences"),
    [
        ("temperature", [0.3, 1.0], {N // 3, 2 * N // 3}),
        ("temperature", [None, 0.0], None),
        ("top_p", [0.9, None], None),
        ("logprob_stage", ["before", "after"], None),
        ("model", ["m-7b", "m-8b"], None),
        ("rubric", ["mine", "yours"], None),
        ("dataset", ["set-7", "set-8"], {N}),
    ],
)
def test_different_replies_are_never_pooled(
    column: str, values: list[object], divergences: set[int] | None, table: pa.Table, tmp_path: Path
) -> None:
    """Data sets of one domain are one where the signals disagree."""
    known = table if divergences else table.drop_columns([*TARGETS, "score_b", "score_c"])
    found = analysed(changed(known, **{column: [values[row % 3 == 0] for row in range(N)]}), tmp_path)
    assert sorted(row["replies"] for row in rows_of(found, "strata")) == [N // 3, 2 * N // 3]
    assert len({row["stratum"] for row in rows_of(found, "strata")}) == 2
    for name in ("associations", "signal_pairs", "score_distributions", "trajectory_percent"):
        assert {row["n"] for row in rows_of(found, name)} <= {*range(2 * N // 3 + 1)}, name
    if divergences:
        assert {row["n"] for row in rows_of(found, "divergences", divergence="unsure but right")} == divergences


def test_groups_of_different_makeup_have_no_p_values_with_a_reason(table: pa.Table, tmp_path: Path) -> None:
    group = [f"g{size}" for size in range(1, N) for _ in range(size)][:N]
    found = analysed(changed(table.drop_columns([*TARGETS]), group=group), tmp_path)
    assert "no two groups are exchangeable" in str(row_of(found, "strata")["remark"])
    assert {row["p"] for row in rows_of(found, "associations")} == {None}


def test_one_unknown_token_in_every_reply_leaves_the_windows_without_it(table: pa.Table, tmp_path: Path) -> None:
    broken = [[*each[:-1], -9999.0] for each in table["logprob"].to_pylist()]
    found = analysed(changed(table.drop_columns([*TARGETS]), logprob=broken), tmp_path)
    assert "no whole-reply features" in str(row_of(found, "strata")["remark"])
    assert row_of(found, "associations", target="quality", feature="logprob.first-3.mean")["value"] is not None
    assert row_of(found, "associations", target="quality", feature="logprob.full.mean")["value"] is None


def test_a_thinly_known_target_takes_nothing_from_the_others(table: pa.Table, tmp_path: Path) -> None:
    few = [value if place < 20 else None for place, value in enumerate(table["correct"].to_pylist())]
    found = analysed(changed(table, correct=few), tmp_path)
    tops = rows_of(found, "top_features", target="critical flag", rank=1)
    assert tops
    assert all(row["max_p"] is not None and row["held_out"] is not None for row in tops)


def test_the_order_of_the_rows_changes_nothing(table: pa.Table, tmp_path: Path) -> None:
    named = changed(table, reply=[f"r{number:04}" for number in range(N)])
    order = np.random.default_rng(4).permutation(N)
    first, again = (analysed(each, tmp_path) for each in (named, named.take(pa.array(order))))
    for name in ("associations", "signal_pairs", "correctness", "top_features", "divergence_cases"):
        assert rows_of(first, name) == rows_of(again, name), name


def test_a_reply_without_logprobs_stays_with_those_beside_it(table: pa.Table, tmp_path: Path) -> None:
    """Its record says nothing of a stage, for there was none; its scores are of the same stratum."""
    logprobs = table["logprob"].to_pylist()
    silent = {"logprob": [None] * 40 + logprobs[40:], "logprob_stage": ["unknown"] * 40 + ["before"] * (N - 40)}
    found = analysed(changed(table.drop_columns([*TARGETS]), **silent), tmp_path)
    assert [(row["replies"], row["with_logprobs"]) for row in rows_of(found, "strata")] == [(N, N - 40)]


def _of_roles(folder: Path, roles: Sequence[str], *, unsure: str = "", silent: str = "") -> Analysis:
    """Replies of these roles, a case each: the surer, the better; the worse for the role `unsure`."""
    draw = np.random.default_rng(4)
    rows = []
    for role in roles:
        sure = float(draw.uniform(0.1, 1.0))
        logprob = None if role == silent else (-sure * draw.uniform(0.9, 1.1, 60)).tolist()
        score = float(draw.normal(sure if role == unsure else -sure, 0.2))
        rows.append({"role": role, "logprob": logprob, "score_depth": score})
    return analysed(pa.Table.from_pylist(rows), folder)


def test_a_terminal_says_which_way_confidence_points(tmp_path: Path) -> None:
    found = _of_roles(tmp_path, ["solver"] * 40 + ["critic"] * 40, unsure="critic")
    lines = shown(found, width=120).partition("Top features for each target")[2].splitlines()
    solver, critic = (lines[[line.strip() for line in lines].index(role) + 1 :][:2] for role in ("solver", "critic"))
    assert "confident ->" in solver[0]
    assert " better " in solver[1]
    assert " worse " in critic[1]
    assert not any("[" in line for line in solver + critic), "an interval that knows nothing of the choice"
    best = rows_of(found, "top_features")[0]
    assert best["direction"] == "confident -> better"
    assert best["value_low"] < best["value"] < best["value_high"]


def test_a_stratum_says_what_it_is_too_small_for(tmp_path: Path) -> None:
    remarks = {"few": "too few replies", "some": "too few to rank features", "silent": "no log-probabilities"}
    roles = ["few"] * 9 + ["some"] * 12 + ["silent"] * 12 + ["enough"] * 30
    found = _of_roles(tmp_path, roles, silent="silent")
    assert {row["role"]: row["remark"] for row in rows_of(found, "strata")} == {**remarks, "enough": ""}


def test_too_few_cases_for_intervals_are_reported(tmp_path: Path) -> None:
    said = [_words(_of_roles(tmp_path, ["a"] * n, silent="a")) for n in (LEAST_CLUSTERS - 1, LEAST_CLUSTERS)]
    assert ["independent cases" in words for words in said] == [True, False]
