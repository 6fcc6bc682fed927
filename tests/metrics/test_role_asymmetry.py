"""Two roles of the same debates: differences of one feature, and ratios of best values that keep their luck."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from association_data import Floats, clustered

from moot.metrics.cluster_bootstrap import cluster_weights, resampled_spearman
from moot.metrics.rank_correlation import spearman_matrix
from moot.metrics.role_asymmetry import RoleResamples, association_difference, ratio_of_maxima


class Role(NamedTuple):
    """Features, targets and the case of each reply of one role."""

    x: Floats
    y: Floats
    clusters: npt.NDArray[np.int64]


def role_resamples(first: Role, second: Role, resamples: int, seed: int = 0) -> RoleResamples:
    drawn = cluster_weights(np.concatenate([first.clusters, second.clusters]), resamples, seed)
    a = resampled_spearman(first.x, first.y, drawn[:, : len(first.x)])
    b = resampled_spearman(second.x, second.y, drawn[:, len(first.x) :])
    clusters = len(np.unique(np.concatenate([first.clusters, second.clusters])))
    return RoleResamples(a, b, spearman_matrix(first.x, first.y), spearman_matrix(second.x, second.y), clusters)


def _roles(random: np.random.Generator, first: float, second: float, features: int = 4) -> tuple[Role, Role]:
    """Two roles that speak in the same 60 cases; their scores go with the first feature as strongly as is said."""
    columns, codes = clustered(random, 60, 4, features + 1)
    turn = np.arange(len(codes)) % 2
    roles = []
    for number, strength in enumerate((first, second)):
        rows = columns[turn == number]
        y = strength * rows[:, 0] + np.sqrt(1 - strength**2) * rows[:, -1]
        roles.append(Role(rows[:, :-1], y, codes[turn == number]))
    return roles[0], roles[1]


def test_what_was_observed_is_each_roles_own_association() -> None:
    first, second = _roles(np.random.default_rng(1), -0.6, 0.2)
    found = role_resamples(first, second, 5)
    assert found.observed_first == pytest.approx(spearman_matrix(first.x, first.y))
    assert found.observed_second == pytest.approx(spearman_matrix(second.x, second.y))
    difference = association_difference(found)
    expected = np.abs(found.observed_first) - np.abs(found.observed_second)
    assert difference.value == pytest.approx(expected)
    ratio = ratio_of_maxima(found)
    assert ratio == pytest.approx(np.abs(found.observed_first).max() / np.abs(found.observed_second).max())


def test_the_same_role_twice_does_not_differ() -> None:
    role, _ = _roles(np.random.default_rng(5), 0.5, 0.5)
    found = role_resamples(role, role, 50)
    difference, ratio = association_difference(found), ratio_of_maxima(found)
    assert difference.value == pytest.approx(np.zeros((4, 1)))
    assert np.isnan(difference.low).all()
    assert ratio == pytest.approx(1.0)


def test_intervals_of_a_difference_cover() -> None:
    """Nominally 95 %, of 150 worlds; the true rho of a normal pair r is 6 / pi arcsin(r / 2)."""
    random, covered = np.random.default_rng(6), 0
    true = 6 / np.pi * (np.arcsin(0.6 / 2) - np.arcsin(0.3 / 2))
    for world in range(150):
        found = association_difference(role_resamples(*_roles(random, -0.6, 0.3, features=1), 100, seed=world))
        covered += bool((found.low <= true <= found.high).item())
    assert 0.88 < covered / 150 < 0.995


def test_the_ratio_of_best_values_is_biased_towards_1_and_has_no_interval() -> None:
    """.9 over .1 is 9; of ten features the best that goes with noise has far more than .1."""
    strong = ratio_of_maxima(role_resamples(*_roles(np.random.default_rng(7), 0.9, 0.1, features=10), 60))
    assert 1.3 < strong < 9.0


def test_two_roles_without_any_association_are_not_found_to_differ() -> None:
    random, found = np.random.default_rng(10), 0
    for world in range(100):
        difference = association_difference(role_resamples(*_roles(random, 0.0, 0.0, features=1), 60, seed=world))
        found += bool((difference.low > 0.0).item() or (difference.high < 0.0).item())
    assert found <= 9


def test_what_is_undefined_is_nan_and_left_out() -> None:
    first, second = _roles(np.random.default_rng(8), 0.5, 0.3)
    targets = np.column_stack([first.y, np.ones(len(first.y))])
    constant: Floats = np.column_stack([second.y, np.arange(len(second.y))])
    found = role_resamples(Role(first.x, targets, first.clusters), Role(second.x, constant, second.clusters), 20)
    difference = association_difference(found)
    assert np.isnan(difference.value[:, 1]).all()
    assert np.isnan(difference.low[:, 1]).all()
    alone = role_resamples(first, second, 20)
    assert ratio_of_maxima(found) == pytest.approx(ratio_of_maxima(alone))
