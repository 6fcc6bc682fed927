"""Joint counts and the divergences in them: cells add up, and the counts are those of the replies themselves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.metrics.online.divergence_counts import BINS, JointCounts, SignalDivergence, divergences
from moot.metrics.signal_divergences import conditions, confidence_ends

Floats = npt.NDArray[np.float64]

NAN = float("nan")
REPLY = st.tuples(
    st.sampled_from([NAN, -1e-6, -0.01, -0.3, -0.31, -2.0, -40.0]),
    st.sampled_from([NAN, 0.0, 13 / 3, 5.0, 31 / 6, 8.0, 9.0, 12.0]),
    st.sampled_from([NAN, 0.0, 1 / 3, 0.5, 1.0]),
    st.sampled_from([NAN, 0.0, 1.0]),
)


def joint(replies: list[tuple[float, float, float, float]]) -> JointCounts:
    """Counts of replies given as (mu, quality, flag, correct)."""
    columns = np.array(replies, np.float64).reshape(len(replies), 4)
    return JointCounts.of(*columns.T)


@given(REPLY)
def test_a_cell_says_what_was_put_in(reply: tuple[float, float, float, float]) -> None:
    mu, quality, flag, correct = reply
    cells = joint([reply])
    np.testing.assert_allclose(cells.quality(), [quality], atol=1e-12)
    np.testing.assert_array_equal(cells.correct(), [correct])
    np.testing.assert_array_equal(cells.flagged(), [NAN if np.isnan(flag) else float(flag >= 0.5)])
    assert cells.mu_bin().tolist() == [-1 if np.isnan(mu) else BINS.index(mu)]


def counted(name: str, one: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]) -> SignalDivergence:
    """Two properties of replies of which both are known."""
    n = len(one)
    return SignalDivergence(
        name, int((one & other).sum()), n, float((one & other).mean()), float(one.mean() * other.mean())
    )


def test_divergences_are_those_counted_one_by_one() -> None:
    draw = np.random.default_rng(5)
    mu = -draw.exponential(0.4, 400)
    flag = (draw.random(400) < 0.1).astype(float)
    quality = np.where(flag > 0, 0.0, draw.integers(3, 10, 400))
    correct = (draw.random(400) < 0.6).astype(float)
    parts = [JointCounts.of(mu[rows], quality[rows], flag[rows], correct[rows]) for rows in np.split(np.arange(400), 8)]
    merged = JointCounts.empty()
    for part in parts:
        merged = part.merge(merged)
    found = divergences(merged)
    low, high = np.sort(mu)[[99, -100]]
    assert found.mu_low == pytest.approx(low, rel=0.01)
    assert found.mu_high == pytest.approx(high, rel=0.01)
    bins = BINS.index(mu)
    sure, unsure = bins >= BINS.index(high), bins <= BINS.index(low)
    weak = (quality <= 5) | (flag >= 0.5)
    for got, expected in zip(
        found,
        [
            counted("confident but weak", sure, weak),
            counted("good reasoning, wrong answer", quality >= 8, correct == 0),
            counted("unsure but right", unsure, correct == 1),
        ],
        strict=True,
    ):
        assert (got.name, got.count, got.n) == (expected.name, expected.count, expected.n)
        assert got.prevalence == pytest.approx(expected.prevalence)
        assert got.expected == pytest.approx(expected.expected)
        assert got.count > 0
    assert 100 <= sure.sum() < 110
    assert 100 <= unsure.sum() < 110
    strict = divergences(merged, low_quality=0.0, high_quality=9.0, mu_share=0.4)
    assert strict.good_but_wrong.count == ((quality == 9) & (correct == 0)).sum()
    assert strict.unsure_but_right.count > found.unsure_but_right.count


def test_what_is_unknown_is_not_counted() -> None:
    replies = [(-0.1, NAN, NAN, 1.0), (NAN, 9.0, 0.0, 0.0), (-0.5, 9.0, 0.0, NAN), (-0.9, 3.0, 0.0, 1.0)]
    found = divergences(joint(replies))
    assert [one.n for one in found] == [2, 2, 2]
    assert found.good_but_wrong.count == 1
    nothing = divergences(JointCounts.empty())
    assert [one.n for one in nothing] == [0, 0, 0]
    assert all(np.isnan(one.prevalence) and np.isnan(one.expected) for one in nothing)


@pytest.mark.parametrize("scale", [1e-7, 1e-5, 1e-3, 1.0])
def test_near_certain_replies_are_distinguished_as_any_others(scale: float) -> None:
    """Only replies within a bin, 1 %, of an end of confidence may count otherwise than one by one."""
    draw = np.random.default_rng(8)
    mu = -scale * np.exp(draw.normal(0.0, 1.0, 400))
    quality, correct = draw.choice([3.0, 6.0, 9.0], 400), draw.integers(0, 2, 400).astype(float)
    ends = confidence_ends(mu)
    exact = list(conditions(mu, quality, np.zeros(400), correct, ends))
    found = divergences(JointCounts.of(mu, quality, np.zeros(400), correct))
    np.testing.assert_allclose([found.mu_low, found.mu_high], ends, rtol=0.0051)
    unclear = np.abs(mu[:, np.newaxis] / ends - 1.0).min(axis=1) <= 0.0101
    for one, each in zip(found, exact, strict=True):
        assert (one.name, one.n) == (each.name, 400)
        assert abs(one.count - int((each.first & each.second).sum())) <= unclear.sum() <= 12
