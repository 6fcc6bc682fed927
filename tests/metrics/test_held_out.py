"""Folds that keep groups together, and the best of many features where it had no part in being chosen."""

from __future__ import annotations

import numpy as np
import pytest
from association_data import clustered, with_missing_values
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from moot.metrics.class_separation import auroc_matrix
from moot.metrics.held_out import held_out_selection
from moot.metrics.logistic_regression import grouped_folds
from moot.metrics.rank_correlation import spearman_matrix


@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(2, 6), st.integers(0, 5))
def test_folds_keep_groups_together_and_are_even(groups: list[int], folds: int, seed: int) -> None:
    number = len(set(groups))
    if number < folds:
        refuses("cannot be assigned", grouped_folds, groups, folds, seed)
        return
    fold = grouped_folds(groups, folds, seed)
    of_group = {group: set(fold[np.array(groups) == group]) for group in set(groups)}
    assert all(len(found) == 1 for found in of_group.values())
    sizes = np.bincount([found.pop() for found in of_group.values()], minlength=folds)
    assert sizes.max() - sizes.min() <= 1


def test_the_best_of_many_noise_features_is_worth_nothing_held_out() -> None:
    """20 worlds of 150 noise features with clusters: the best looks good in each of them, and is nothing elsewhere."""
    random = np.random.default_rng(1)
    held, seen, held_area, seen_area = [], [], [], []
    for world in range(20):
        x, codes = clustered(random, 50, 3, 150)
        y = clustered(random, 50, 3, 1)[0]
        found = held_out_selection(x, y, codes, seed=world)
        held.append(found.value.item())
        seen.append(found.in_sample.item())
        area = held_out_selection(x, y > 0.8, codes, seed=world, statistic="auroc")
        held_area.append(area.value.item())
        seen_area.append(area.in_sample.item())
    assert min(seen) > 0.2
    assert abs(np.mean(held)) < 0.08
    assert min(seen_area) > 0.6
    assert abs(np.mean(held_area) - 0.5) < 0.05


def test_a_real_feature_is_found_in_every_fold_whichever_way_it_points() -> None:
    random = np.random.default_rng(2)
    x, codes = clustered(random, 80, 4, 40)
    y = np.column_stack([x[:, 5], -x[:, 9]]) + clustered(random, 80, 4, 2)[0]
    found = held_out_selection(x, y, codes)
    assert found.chosen.tolist() == [[5, 9]] * 5
    assert found.best.tolist() == [5, 9]
    assert found.in_sample == pytest.approx(np.abs(spearman_matrix(x, y))[[5, 9], [0, 1]])
    assert (found.value > 0.5).all()
    assert found.n.tolist() == [320, 320]
    area = held_out_selection(x, y > 0, codes, statistic="auroc")
    assert area.chosen.tolist() == [[5, 9]] * 5
    assert (area.value > 0.7).all()
    assert area.in_sample[1] == pytest.approx(1 - auroc_matrix(x[:, 9], y[:, 1] > 0).item())


def test_each_fold_is_measured_on_its_own_rows_with_the_sign_learnt_elsewhere() -> None:
    x, y, clusters = with_missing_values(3, n=200)
    found = held_out_selection(x, y, clusters, folds=3, seed=4)
    fold = grouped_folds(clusters, 3, 4)
    for number, target in np.ndindex(3, 3):
        learnt = spearman_matrix(x[fold != number], y[fold != number])[:, target]
        best = int(np.nanargmax(np.abs(learnt)))
        out = spearman_matrix(x[fold == number, best], y[fold == number, target]).item()
        assert found.chosen[number, target] == best
        assert found.by_fold[number, target] == pytest.approx(np.sign(learnt[best]) * out)


def test_what_is_undefined_is_nan() -> None:
    x, clusters = np.ones((12, 2)), np.arange(12)
    found = held_out_selection(x, np.arange(12.0), clusters, folds=3)
    assert np.isnan(found.value).all()
    assert np.isnan(found.in_sample).all()
    assert found.best.tolist() == [-1]
    assert (found.chosen == -1).all()
    assert found.n.tolist() == [0]
    rare = held_out_selection(np.arange(12.0), np.arange(12) == 4, clusters, folds=3, statistic="auroc")
    assert np.isnan(rare.by_fold).all()  # the one flagged row is held out, or all that is learnt from
    refuses("3 clusters for 2 rows", held_out_selection, [1.0, 2.0], [1.0, 2.0], [0, 1, 2], folds=2)
    refuses("two folds", grouped_folds, [0, 1], 1)
