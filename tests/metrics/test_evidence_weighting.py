"""Aggregating judge passes: the printed formula, ours, and what must hold of both."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refuses

from moot.metrics.evidence_weighting import (
    Weighting,
    evidence_weighted_score,
    flip_rate,
    judge_stability,
)

unit = st.floats(0.0, 1.0)
vectors = st.integers(1, 6).flatmap(lambda k: arrays(np.float64, k, elements=unit))
tables = st.tuples(st.integers(1, 5), st.integers(2, 4)).flatmap(lambda shape: arrays(np.float64, shape, elements=unit))


def test_the_papers_example() -> None:
    uneven, even = [0.9, 0.4, 0.6], [0.88, 0.91, 0.90]
    assert float(np.var(uneven)) == pytest.approx(0.0422, abs=5e-5)
    assert evidence_weighted_score(uneven, "printed") == pytest.approx(0.6333, abs=5e-5)
    assert evidence_weighted_score(uneven, "variance-penalised") == pytest.approx(0.63333333 * math.exp(-0.04222222))
    for weighting in ("printed", "variance-penalised"):
        assert evidence_weighted_score(even, weighting) > evidence_weighted_score(uneven, weighting)


@given(vectors)
def test_printed_is_the_papers_weighted_sum(scores: np.ndarray) -> None:
    weights = np.array([math.exp(-float(np.var(scores))) for _ in scores])
    expected = float((weights * scores).sum() / weights.sum())
    assert evidence_weighted_score(scores, "printed") == pytest.approx(expected)


@given(vectors, st.floats(0.0, 2.0), unit, st.data())
def test_penalised_never_falls_when_a_score_rises(
    scores: np.ndarray, lam: float, to: float, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(scores) - 1))
    better = scores.copy()
    better[at] = max(to, scores[at])
    before = evidence_weighted_score(scores, "variance-penalised", lam)
    assert evidence_weighted_score(better, "variance-penalised", lam) >= before - 1e-12
    assert 0.0 <= before <= 1.0


@given(tables, unit, st.data())
def test_per_variant_never_falls_when_a_score_rises(scores: np.ndarray, to: float, data: st.DataObject) -> None:
    at = data.draw(st.tuples(*(st.integers(0, size - 1) for size in scores.shape)))
    better = scores.copy()
    better[at] = max(to, scores[at])
    before = evidence_weighted_score(scores, "per-variant")
    assert evidence_weighted_score(better, "per-variant") >= before - 1e-12
    assert -1e-12 <= before <= 1.0 + 1e-12


def test_per_variant_weights() -> None:
    scores = [[0.9, 0.9], [0.0, 0.8]]
    weight = math.exp(-0.16)
    expected = (0.9 + 0.4 * weight) / (1 + weight)
    assert evidence_weighted_score(scores, "per-variant") == pytest.approx(expected)
    assert evidence_weighted_score(scores, "printed") == pytest.approx(0.65)


def test_per_variant_leaves_out_what_has_no_variance() -> None:
    kept = evidence_weighted_score([[0.2, 0.4], [0.5, 0.7]], "per-variant")
    scores = [[0.2, 0.4, math.nan], [1.0, math.nan, math.nan], [math.nan] * 3, [0.5, 0.7, math.nan]]
    assert evidence_weighted_score(scores, "per-variant") == pytest.approx(kept)
    assert math.isnan(evidence_weighted_score([[1.0, math.nan]], "per-variant"))


@pytest.mark.parametrize("weighting", ["printed", "variance-penalised"])
def test_missing_scores_are_left_out(weighting: Weighting) -> None:
    known = evidence_weighted_score([0.9, 0.4], weighting)
    assert evidence_weighted_score([math.nan, 0.9, None, 0.4], weighting) == known
    assert evidence_weighted_score([[0.8, 1.0], [0.4, math.nan], [math.nan] * 2], weighting) == known
    for nothing in ([], [math.nan] * 3, [[math.nan] * 2] * 3):
        assert math.isnan(evidence_weighted_score(nothing, weighting))


def test_refuses_bad_input() -> None:
    for scores in ([0.5, 0.6], [[0.5], [0.6]]):
        refuses("R > 1", evidence_weighted_score, scores, "per-variant")
    for scores in ([1.5], [-0.1, math.nan], [math.inf]):
        refuses("outside", evidence_weighted_score, scores, "printed")
    refuses("shape", judge_stability, 0.5)
    refuses("weighting", evidence_weighted_score, [0.5], "mean")


def test_stability() -> None:
    assert judge_stability([1.0, 1.0, 0.0]) == pytest.approx(7 / 9)
    assert judge_stability([0.0, 1.0]) == 0.75
    assert judge_stability([0.3, math.nan, 0.5]) == pytest.approx(0.99)
    assert judge_stability([[0.2, 0.4], [0.5, math.nan]]) == pytest.approx(0.99)
    for too_few in ([], [0.4], [0.4, math.nan], [[0.4, 0.9]]):
        assert math.isnan(judge_stability(too_few))


def test_flip_rate() -> None:
    assert flip_rate(["A", "A", "A"]) == 0.0
    assert flip_rate(["A", "B"]) == 0.5
    assert flip_rate(["A", "B", "B", None]) == pytest.approx(1 / 3)
    assert math.isnan(flip_rate([]))
    assert math.isnan(flip_rate([None, None]))
