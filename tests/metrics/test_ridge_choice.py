"""The chosen penalty against scikit-learn's, held-out rows, and the bounds of probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from moot.metrics.logistic_regression import (
    RIDGES,
    bounded,
    fit_chosen,
    fit_platt_scaling,
    grouped_folds,
    held_out_probabilities,
    least_probability,
)


def directions(n: int, k: int, signal: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors, and outcomes that hang on the first coordinate, the more so the larger the signal."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = random.normal(size=(n, k))
    x[:, 0] += signal * (2 * y - 1)
    return x / np.linalg.norm(x, axis=1, keepdims=True), y.astype(float)


@pytest.mark.parametrize(("n", "k"), [(120, 15), (60, 90)], ids=["more rows", "more columns"])
def test_the_choice_is_that_of_the_held_out_log_losses(n: int, k: int) -> None:
    x, y = directions(n, k, 2.0)
    groups = np.arange(n) // 2
    chosen = fit_chosen(x, y, groups, folds=4, seed=3)
    fold = grouped_folds(groups, 4, 3, y)
    for place in (0, 4, len(RIDGES) - 1):
        p = np.empty(n)
        for number in range(4):
            out = fold == number
            model = LogisticRegression(C=1 / RIDGES[place], tol=1e-12, max_iter=10_000, solver="newton-cholesky")
            p[out] = model.fit(x[~out], y[~out]).predict_proba(x[out])[:, 1]
        bound = bounded(p, least_probability(n // 2))
        assert chosen.log_losses[place] == pytest.approx(log_loss(y, bound), abs=1e-6)
    assert chosen.ridge == RIDGES[int(np.argmin(chosen.log_losses))]


def test_a_held_out_row_has_no_part_in_its_probability() -> None:
    x, y = directions(60, 5, 1.0)
    groups = np.arange(60)
    fold = grouped_folds(groups, 5, 0, y)
    p = held_out_probabilities(x, y, groups, fold, 5)
    other = y.copy()
    out = np.flatnonzero(fold == 2)
    other[out] = 1.0 - other[out]
    assert held_out_probabilities(x, other, groups, fold, 5)[out] == pytest.approx(p[out])
    assert held_out_probabilities(x, other, groups, fold, 5)[fold != 2] != pytest.approx(p[fold != 2])


def test_noise_is_given_no_direction_on_average_and_little_weight() -> None:
    areas, spreads = [], []
    for seed in range(16):
        x, y = directions(60, 10, 0.0, seed)
        fold = grouped_folds(np.arange(60), 5, seed, y)
        p = held_out_probabilities(x, y, np.arange(60), fold, 5, seed)
        wins = [np.sign(p[(fold == k) & (y == 1)][:, None] - p[(fold == k) & (y == 0)]).mean() for k in range(5)]
        areas.append(0.5 + np.mean(wins) / 2)
        spreads.append(np.median(np.abs(p - 0.5)))
    assert np.mean(areas) == pytest.approx(0.5, abs=0.06)
    assert np.median(spreads) < 0.1


def test_separable_groups_are_not_called_certain() -> None:
    x, y = directions(40, 3, 50.0)
    chosen = fit_chosen(x, y, np.arange(40))
    assert chosen.probability(np.array([[9.0, 0.0, 0.0], [-9.0, 0.0, 0.0]])).tolist() == [1 - 1 / 42, 1 / 42]
    assert fit_chosen(np.repeat(x, 3, axis=0), np.repeat(y, 3), np.repeat(np.arange(40), 3)).least == chosen.least


def test_what_cannot_be_chosen_from_is_refused() -> None:
    x, y = directions(20, 3, 1.0)
    refuses("both outcomes", fit_chosen, x, np.zeros(20), np.arange(20))
    refuses("cannot be assigned", fit_chosen, x, y, np.repeat([0, 1], 10))
    refuses("one row of predictors", fit_chosen, x[:, 0], y, np.arange(20))


def test_balanced_folds_keep_groups_and_shares() -> None:
    groups, y = np.repeat(np.arange(30), 2), np.repeat(np.arange(30) < 10, 2).astype(float)
    fold = grouped_folds(groups, 5, 7, y)
    assert (fold[::2] == fold[1::2]).all()
    assert [y[fold == number].sum() for number in range(5)] == [4.0] * 5
    assert (grouped_folds(groups, 5, 8, y) != fold).any()
    for folds, why in ((1, "two folds"), (31, "cannot be assigned")):
        refuses(why, grouped_folds, groups, folds, outcome=y)


def test_scaling_undoes_too_much_certainty_and_turns_nothing_round() -> None:
    random = np.random.default_rng(1)
    odds = random.normal(0.0, 1.5, 4000)
    y = (random.random(4000) < 1 / (1 + np.exp(-odds))).astype(float)
    found = fit_platt_scaling(5.0 * odds, y)
    assert found.coefficients[0] == pytest.approx(0.2, abs=0.02)
    assert found.log_odds(5.0 * odds[:, np.newaxis]) == pytest.approx(odds, abs=0.5)
    turned = fit_platt_scaling(-odds, y)
    assert turned.coefficients[0] == 0.0
    assert turned.log_odds(np.array([[3.0], [-3.0]])) == pytest.approx(np.log(y.mean() / (1 - y.mean())))
