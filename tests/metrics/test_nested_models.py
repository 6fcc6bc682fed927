"""Logistic regression and its cross-validated scores against scikit-learn; what a block adds."""

from __future__ import annotations

import numpy as np
import pytest
from association_data import clustered
from refusals import refuses
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler

from moot.metrics.logistic_regression import RIDGE, fit_logistic, grouped_folds
from moot.metrics.nested_models import nested_comparison


def test_the_fit_is_scikit_learns() -> None:
    random = np.random.default_rng(1)
    x = random.normal(3.0, [1.0, 50.0, 0.01], size=(200, 3))
    y = (random.random(200) < 1 / (1 + np.exp(3 - x[:, 0] - 0.02 * x[:, 1]))).astype(float)
    model = fit_logistic(x, y)
    standard = StandardScaler().fit_transform(x)
    theirs = LogisticRegression(C=1 / RIDGE, tol=1e-10, max_iter=10_000).fit(standard, y)
    assert model.coefficients * x.std(axis=0) == pytest.approx(theirs.coef_[0], abs=1e-5)
    assert model.probability(x) == pytest.approx(theirs.predict_proba(standard)[:, 1], abs=1e-5)


def test_separable_classes_and_predictors_that_say_the_same_have_finite_coefficients() -> None:
    x = np.arange(20.0)
    model = fit_logistic(np.column_stack([x, 2 * x, np.full(20, 0.1)]), x > 9.5)
    assert model.coefficients[0] == pytest.approx(2 * model.coefficients[1])
    assert 0.1 < x.std() * model.coefficients[0] < 10
    assert model.coefficients[2] == 0.0
    outlier = fit_logistic(np.append(x, 1e9)[:, np.newaxis], np.append(x > 9.5, False))
    assert np.isfinite(outlier.coefficients).all()
    for ridge, ones, why in ((1.0, np.ones(20), "both outcomes"), (0.0, x > 9.5, "above 0")):
        refuses(why, fit_logistic, x[:, np.newaxis], ones, ridge=ridge)


@pytest.mark.parametrize("seed", range(12))
def test_a_fit_of_a_flat_likelihood_reaches_its_maximum(seed: int) -> None:
    """Separable classes in large units with next to no penalty: losses differ by less than they are rounded."""
    random = np.random.default_rng(seed)
    x = random.normal(scale=10.0 ** random.uniform(1, 3), size=(5000, 3))
    ones, ridge = (x[:, 0] > 0.0).astype(float), 10.0 ** random.uniform(-4, -1)
    model = fit_logistic(x, ones, ridge=ridge, standardise=False)
    scale = np.abs(x).max()
    slope = (x / scale).T @ (model.probability(x) - ones) + ridge * model.coefficients / scale
    assert slope == pytest.approx(np.zeros(3), abs=1e-5)


def test_scores_are_scikit_learns_on_the_same_folds() -> None:
    random = np.random.default_rng(2)
    x, codes = clustered(random, 60, 4, 3)
    y = (x[:, 0] + random.normal(size=len(x)) > 0).astype(float)
    x[::17, 1], y[::13] = np.nan, np.nan
    found = nested_comparison({"a": x[:, 0], "b and c": x[:, 1:]}, y, codes, folds=4, seed=3)
    known = ~np.isnan(x).any(axis=1) & ~np.isnan(y)
    x, y, fold = x[known], y[known], grouped_folds(codes[known], 4, 3)
    assert [(score.name, score.predictors, score.n) for score in found] == [("a", 1, len(y)), ("b and c", 3, len(y))]
    for score in found:
        p = np.empty(len(y))
        for number in range(4):
            out, some = fold == number, slice(score.predictors)
            scaler = StandardScaler().fit(x[~out, some])
            model = LogisticRegression(C=1 / RIDGE, tol=1e-10, max_iter=10_000)
            model.fit(scaler.transform(x[~out, some]), y[~out])
            p[out] = model.predict_proba(scaler.transform(x[out, some]))[:, 1]
        assert score.log_loss == pytest.approx(log_loss(y, p), abs=1e-5)
        parts = [(y[fold == number], p[fold == number]) for number in range(4)]
        pairs = [float(of.sum() * (1.0 - of).sum()) for of, _ in parts]
        areas = [roc_auc_score(of, said) for of, said in parts]
        assert score.auroc == pytest.approx(np.average(areas, weights=pairs), abs=1e-3)
        assert score.brier == pytest.approx(brier_score_loss(y, p), abs=1e-5)
    assert np.isnan(found[0].gain)
    assert found[1].gain == pytest.approx(found[0].log_loss - found[1].log_loss)
    assert found[1].gain_low < found[1].gain < found[1].gain_high


def test_signal_helps_and_noise_does_not() -> None:
    random = np.random.default_rng(4)
    x, codes = clustered(random, 150, 3, 12)
    y = x[:, 0] + 0.7 * random.normal(size=len(x)) > 0
    blocks = {"share of ones": x[:, :0], "signal": x[:, 0], "noise": x[:, 1:]}
    share, signal, noise = nested_comparison(blocks, y, codes)
    assert share.log_loss == pytest.approx(np.log(2), abs=0.02)
    assert share.predictors == 0
    assert signal.gain_low > 0.1
    assert signal.auroc > 0.8
    assert noise.gain_low < 0.0
    assert noise.gain < 0.01


def test_an_empty_gain_is_rarely_called_one() -> None:
    """40 worlds in which a block of the outcome's clusters, but not of the outcome, is added."""
    random, called = np.random.default_rng(5), 0
    for world in range(40):
        x, codes = clustered(random, 40, 4, 2, share=0.9)
        y = clustered(random, 40, 4, 1, share=0.9)[0][:, 0] > 0
        called += nested_comparison({"a": x[:, 0], "b": x[:, 1]}, y, codes, seed=world)[1].gain_low > 0
    assert called <= 4


def test_one_class_in_a_training_part_leaves_nothing_to_say() -> None:
    y = np.zeros(20)
    y[3] = 1.0
    (score,) = nested_comparison({"a": np.arange(20.0)}, y, np.arange(20))
    assert np.isnan([score.log_loss, score.auroc, score.brier, score.gain]).all()
    assert score.n == 20


def test_bad_input_is_refused() -> None:
    refuses("no block", nested_comparison, {}, [0, 1], [0, 1])
    refuses("0, 1 or unknown", nested_comparison, {"a": [1.0, 2.0]}, [0, 2], [0, 1])
    refuses("one row for each", nested_comparison, {"a": [1.0, 2.0, 3.0]}, [0, 1], [0, 1])
    refuses("cannot be assigned", nested_comparison, {"a": [1.0, np.nan]}, [0, 1], [0, 1], folds=2)
