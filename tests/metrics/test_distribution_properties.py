"""What must hold for all distributions, zeros included: ranges, symmetries, and a batch that equals its rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from moot.metrics.divergence import (
    cross_entropy,
    entropy,
    generalised_jensen_shannon,
    information_gain,
    jensen_shannon_divergence,
    kl_divergence,
    mixture,
    mutual_information,
    normalised_mutual_information,
    reliability_weights,
    total_variation,
)
from moot.metrics.transport import embedding_distance, wasserstein

Rows = npt.NDArray[np.float64]
Measure = Callable[..., Any]

SYMMETRIC: list[Measure] = [
    jensen_shannon_divergence,
    total_variation,
    wasserstein,
    mutual_information,
    normalised_mutual_information,
]
OF_TWO: list[Measure] = [*SYMMETRIC, kl_divergence, cross_entropy, information_gain]
TINY = 1e-12


@st.composite
def several(draw: st.DrawFn, m: int) -> Rows:
    """m distributions over 1 to 7 labels; zeros, point masses and masses down to 1e-300 are common."""
    k = draw(st.integers(1, 7))
    mass = st.one_of(st.just(0.0), st.just(1.0), st.floats(0.0, 1.0), st.floats(1e-300, 1e-6))
    rows = draw(
        st.lists(st.lists(mass, min_size=k, max_size=k).filter(lambda row: sum(row) > 1e-290), min_size=m, max_size=m)
    )
    whole: Rows = np.array(rows)
    whole /= whole.sum(axis=1, keepdims=True)
    whole[whole < 1e-300] = 0.0  # a share of the smallest numbers is 0, and infinitely far
    return whole


@given(several(2))
def test_ranges(pair: Rows) -> None:
    p, q = pair
    least, most = sorted((entropy(p), entropy(q)))
    assert 0.0 <= least <= most <= math.log(len(p)) + TINY
    assert 0.0 <= jensen_shannon_divergence(p, q) <= math.log(2.0)
    assert jensen_shannon_divergence(p, q) <= math.log(2.0) * total_variation(p, q) + TINY
    assert jensen_shannon_divergence(p, q) >= total_variation(p, q) ** 2 / 2 - TINY
    assert 0.0 <= total_variation(p, q) <= 1.0
    assert kl_divergence(p, q) >= 2 * total_variation(p, q) ** 2 - TINY  # Pinsker
    assert 0.0 <= mutual_information(p, q) <= least
    assert 0.0 <= normalised_mutual_information(p, q) <= 1.0


@pytest.mark.parametrize("measure", SYMMETRIC)
@given(pair=several(2))
def test_symmetric(measure: Measure, pair: Rows) -> None:
    assert measure(*pair) == pytest.approx(measure(*pair[::-1]), abs=1e-9)


@given(several(1))
def test_equal_distributions(row: Rows) -> None:
    p = row[0]
    for measure in (kl_divergence, jensen_shannon_divergence, total_variation, wasserstein, information_gain):
        assert measure(p, p) == 0.0
    assert cross_entropy(p, p) == pytest.approx(entropy(p), abs=TINY)
    assert mutual_information(p, p) == pytest.approx(entropy(p), abs=TINY)
    assert normalised_mutual_information(p, p) == pytest.approx(1.0)


@pytest.mark.parametrize("measure", OF_TWO)
@given(pair=several(2), seed=st.integers(0, 1000))
def test_the_order_of_the_labels_is_nothing(measure: Measure, pair: Rows, seed: int) -> None:
    moved = pair[:, np.random.default_rng(seed).permutation(pair.shape[1])]
    assert measure(*moved) == pytest.approx(measure(*pair), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("measure", OF_TWO)
@given(rows=several(4))
def test_a_batch_gives_what_a_loop_gives(measure: Measure, rows: Rows) -> None:
    whole = measure(rows[:, None, :], rows[None, :, :])
    assert whole.shape == (4, 4)
    for i, p in enumerate(rows):
        for j, q in enumerate(rows):
            alone = measure(p, q)
            assert type(alone) is float
            assert whole[i, j] == pytest.approx(alone, rel=1e-12, abs=TINY)


@given(several(3), st.integers(1, 1000))
def test_transport_is_a_metric_where_the_ground_is(rows: Rows, seed: int) -> None:
    ground = embedding_distance(np.random.default_rng(seed).normal(size=(rows.shape[1], 3)))
    p, q, r = rows
    pq, qr, pr = wasserstein([p, q, p], [q, r, r], ground)
    assert pr <= pq + qr + 1e-9
    assert wasserstein(q, p, ground) == pytest.approx(pq, abs=1e-9)
    assert pq <= total_variation(p, q) * ground.max() + 1e-9
    kept = ground + np.where(np.eye(len(ground)), np.inf, 0.0)
    if len(ground) > 1:
        assert pq >= total_variation(p, q) * kept.min() - 1e-9
    assert wasserstein(p, p, ground) == 0.0


@given(several(3))
def test_a_mixture_is_a_distribution_and_beats_the_worst(rows: Rows) -> None:
    weights = reliability_weights(rows)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0.0).all()
    mixed = mixture(rows, weights)
    assert mixed.sum() == pytest.approx(1.0)
    for truth in np.eye(rows.shape[1]):
        assert kl_divergence(truth, mixed) <= max(kl_divergence(truth, row) for row in rows) + TINY
    assert 0.0 <= generalised_jensen_shannon(rows, weights) <= entropy(weights) + TINY
    assert generalised_jensen_shannon(rows[:2]) == pytest.approx(jensen_shannon_divergence(*rows[:2]), abs=TINY)


BROKEN = [
    [0.5, 0.6, -0.1],
    [0.5, 0.5, math.nan],
    [0.5, 0.4, 0.0],
    [math.inf, -math.inf, 1.0],
    [0.0, 0.0, 0.0],
    [0.5, 0.5, None],
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
@pytest.mark.parametrize("measure", OF_TWO)
def test_what_is_no_distribution_has_no_value(measure: Measure, broken: list[float | None]) -> None:
    fine = [0.25, 0.25, 0.5]
    assert math.isnan(measure(broken, fine))
    assert math.isnan(measure(fine, broken))
    found = measure([fine, broken], [fine, fine])
    assert math.isfinite(found[0])
    assert math.isnan(found[1])


@pytest.mark.parametrize("measure", OF_TWO[:-1])
def test_shapes_that_do_not_fit_are_refused(measure: Measure) -> None:
    refuses("over 2 and over 3 classes", measure, [0.5, 0.5], [0.5, 0.25, 0.25])
    refuses("broadcast", measure, np.full((2, 2), 0.5), np.full((3, 2), 0.5))
    refuses("single number", measure, 1.0, [1.0])
    refuses("over 1 and over 2 classes", measure, [1.0], [0.5, 0.5])
