"""Entropies, divergences and mutual information under the maximal coupling: against scipy; units, smoothing, zeros."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from refusals import refuses
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy as reference

from moot.metrics.divergence import (
    cross_entropy,
    entropy,
    floored,
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

Floats = npt.NDArray[np.float64]

RANDOM = np.random.default_rng(5)
P, Q = RANDOM.dirichlet(np.full(9, 0.5), size=(2, 200))


def test_equal_to_scipy() -> None:
    assert entropy(P) == pytest.approx(reference(P, axis=-1))
    assert kl_divergence(P, Q) == pytest.approx(reference(P, Q, axis=-1))
    assert jensen_shannon_divergence(P, Q) == pytest.approx(jensenshannon(P, Q, axis=-1) ** 2)
    assert cross_entropy(P, Q) == pytest.approx(reference(P, axis=-1) + reference(P, Q, axis=-1))


def test_generalised_is_the_entropy_of_the_mean_less_the_mean_entropy() -> None:
    rows = RANDOM.dirichlet(np.ones(6), size=(50, 4))
    weights = np.array([4.0, 3.0, 2.0, 1.0])
    mean = np.einsum("nmk,m->nk", rows, weights / 10)
    expected = reference(mean, axis=-1) - reference(rows, axis=-1) @ (weights / 10)
    assert generalised_jensen_shannon(rows, weights) == pytest.approx(expected)
    assert generalised_jensen_shannon(np.eye(8)) == pytest.approx(math.log(8))
    assert generalised_jensen_shannon(rows, [1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.0)
    assert np.isnan(generalised_jensen_shannon(rows, [1.0, -1.0, 1.0, 1.0])).all()
    assert np.isnan(generalised_jensen_shannon(rows, np.zeros(4))).all()
    refuses(r"weights of shape \(3,\) for 4", generalised_jensen_shannon, rows, np.ones(3))
    refuses(r"\(\.\.\., m, k\)", generalised_jensen_shannon, [0.5, 0.5])


def test_zeros_are_infinite_unless_smoothed_and_are_counted() -> None:
    truth, stated = [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]
    assert kl_divergence(truth, stated) == math.inf
    assert cross_entropy(truth, stated) == math.inf
    assert floored(truth, stated) is True
    assert floored(stated, stated) is False
    epsilon = 1e-3
    expected = -math.log(epsilon / (1 + 3 * epsilon))
    assert kl_divergence(truth, stated, epsilon=epsilon) == pytest.approx(expected)
    assert cross_entropy(truth, stated, epsilon=epsilon) == pytest.approx(expected)
    assert floored([truth, stated, [math.nan] * 3], stated).tolist() == [True, False, False]


def test_smoothing_is_the_same_for_every_row() -> None:
    epsilon = 0.01
    smoothed = (Q + epsilon) / (1 + 9 * epsilon)
    assert smoothed.sum(axis=1) == pytest.approx(1.0)
    assert kl_divergence(P, Q, epsilon=epsilon) == pytest.approx(reference(P, smoothed, axis=-1))
    assert kl_divergence(P[0], P[0], epsilon=epsilon) > 0.0
    for wrong in (0.0, -1e-9, math.nan, math.inf):
        refuses("epsilon must be above 0", kl_divergence, P, Q, epsilon=wrong)


def test_sums_within_the_tolerance_are_taken_for_one() -> None:
    p = np.array([0.2, 0.3, 0.5])
    assert entropy(p * (1 + 9e-7)) == pytest.approx(entropy(p), rel=1e-12)
    assert math.isnan(entropy(p * (1 + 2e-6)))
    assert total_variation(p.astype(np.float32), p) == pytest.approx(0.0, abs=1e-7)


def test_weights_are_one_less_the_share_of_the_largest_entropy() -> None:
    # H = 1 of 2 bit and 1.5 of 2 bit: reliabilities 1/2 and 1/4.
    rows = [[0.5, 0.5, 0.0, 0.0], [0.5, 0.25, 0.25, 0.0]]
    assert reliability_weights(rows) == pytest.approx([2 / 3, 1 / 3])
    assert reliability_weights([rows, rows[::-1]]) == pytest.approx(np.array([[2, 1], [1, 2]]) / 3)


@pytest.mark.parametrize("k", [2, 3, 5, 7, 10, 49])
def test_rows_that_say_nothing_weigh_the_same(k: int) -> None:
    assert reliability_weights(np.full((3, k), 1.0 / k)).tolist() == [1 / 3] * 3
    beside = np.vstack([np.full((2, k), 1.0 / k), np.eye(k)[:1]])
    assert reliability_weights(beside).tolist() == [0.0, 0.0, 1.0]


def test_a_row_that_is_no_distribution_leaves_all_unknown() -> None:
    rows = [[0.9, 0.1], [0.9, 0.9]]
    assert np.isnan(reliability_weights(rows)).all()
    assert np.isnan(mixture(rows)).all()
    for shape_function in (reliability_weights, mixture):
        refuses(r"\(\.\.\., m, k\)", shape_function, [0.5, 0.5])


def test_mixture() -> None:
    rows = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    assert mixture(rows) == pytest.approx([0.5, 0.5])
    assert mixture(rows, [7.0, 1.0, 0.0]) == pytest.approx([0.875, 0.125])
    both = mixture(np.stack([rows, rows]), [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    assert both == pytest.approx(np.array([[1.0, 0.0], [0.5, 0.5]]))
    assert np.isnan(mixture(rows, [0.0, 0.0, 0.0])).all()
    assert np.isnan(mixture(rows, [1.0, 1.0, math.nan])).all()


def test_gain_is_the_fall_in_entropy() -> None:
    before, after = [0.25] * 4, [0.5, 0.5, 0.0, 0.0]
    assert information_gain(before, after) == pytest.approx(math.log(2))
    assert information_gain(after, before) == pytest.approx(-math.log(2))
    assert information_gain([before, after], after) == pytest.approx([math.log(2), 0.0])


def maximal_coupling(p: Floats, q: Floats) -> Floats:
    """The joint distributions in which both are equal as often as possible (Lindvall 1992, section I.5)."""
    common = np.minimum(p, q)
    apart = (p - common)[..., :, None] * (q - common)[..., None, :] / (p - common).sum(axis=-1)[..., None, None]
    joint: Floats = apart + common[..., :, None] * np.eye(p.shape[-1])
    return joint


def test_against_the_double_sum_over_the_joint() -> None:
    p, q = np.random.default_rng(4).dirichlet(np.full(8, 0.5), size=(2, 100))
    joint = maximal_coupling(p, q)
    product = p[:, :, None] * q[:, None, :]
    terms = np.where(joint > 0.0, joint * np.log(np.where(joint > 0.0, joint, 1.0) / product), 0.0)
    assert mutual_information(p, q) == pytest.approx(terms.sum(axis=(1, 2)))
    larger = np.maximum(entropy(p), entropy(q))
    assert normalised_mutual_information(p, q) == pytest.approx(terms.sum(axis=(1, 2)) / larger)


def test_disjoint_distributions_share_nothing() -> None:
    p, q = [0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 0.3, 0.7]
    assert mutual_information(p, q) == pytest.approx(0.0, abs=1e-12)


def test_point_masses() -> None:
    assert normalised_mutual_information([0.0, 1.0], [0.0, 1.0]) == 1.0
    assert normalised_mutual_information([1.0, 0.0], [0.0, 1.0]) == 0.0
    assert normalised_mutual_information([1.0], [1.0]) == 1.0
    assert mutual_information([0.0, 1.0], [0.0, 1.0]) == 0.0
    assert math.isnan(normalised_mutual_information([math.nan, 1.0], [math.nan, 1.0]))


def test_it_falls_as_a_consensus_sharpens_so_it_does_not_measure_agreement() -> None:
    apart = [[0.5, 0.4, 0.1], [0.4, 0.5, 0.1]]
    sharp = [[0.97, 0.02, 0.01], [0.96, 0.03, 0.01]]
    assert total_variation(*sharp) < total_variation(*apart)
    assert mutual_information(*sharp) < mutual_information(*apart)
