"""Mutual information under the maximal coupling: known values, and why it never steers."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from moot.metrics.divergence import (
    entropy,
    mutual_information,
    normalised_mutual_information,
    total_variation,
)

Floats = npt.NDArray[np.float64]


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
