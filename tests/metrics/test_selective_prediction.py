"""Risk-coverage curve: against a count by hand, at any ties; area against a mean over single cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.metrics.selective_prediction import risk_coverage

CASES = st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.booleans()), min_size=1, max_size=40)


@given(CASES)
def test_each_threshold_keeps_the_cases_at_least_as_confident(cases: list[tuple[float, bool]]) -> None:
    confidence, correct = np.array([c for c, _ in cases]), np.array([float(right) for _, right in cases])
    curve = risk_coverage(confidence, correct)
    for coverage, risk, threshold in zip(curve.coverage, curve.risk, curve.threshold, strict=True):
        kept = confidence >= threshold
        assert coverage == pytest.approx(kept.mean())
        assert risk == pytest.approx(1.0 - correct[kept].mean())
    by_case = [1.0 - correct[confidence >= c].mean() for c in confidence]
    assert curve.area == pytest.approx(np.mean(by_case))
    assert curve.coverage[-1] == 1.0


def test_confidence_that_marks_the_errors_lowers_the_risk_and_random_confidence_does_not() -> None:
    random = np.random.default_rng(3)
    p = random.uniform(0.2, 1.0, 4000)
    right = (random.random(4000) < p).astype(float)
    error = 1.0 - right.mean()
    assert risk_coverage(p, right).area < 0.7 * error
    assert risk_coverage(random.permutation(p), right).area == pytest.approx(error, abs=0.03)


def test_unknown_cases_are_left_out_and_none_is_unknown() -> None:
    curve = risk_coverage([0.5, np.nan, 0.7], [1.0, 1.0, np.nan])
    assert curve.coverage.tolist() == [1.0]
    assert curve.risk.tolist() == [0.0]
    assert np.isnan(risk_coverage([], []).area)
    with pytest.raises(ValueError, match="equal length"):
        risk_coverage([0.5], [1.0, 0.0])
