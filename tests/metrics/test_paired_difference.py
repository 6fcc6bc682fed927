"""Paired differences: the published tests, agreement of test and interval, coverage with and without groups."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import norm, ttest_1samp

from moot.metrics.paired_difference import PairedDifference, mean_difference, paired_difference

BENCH = runpy.run_path(str(Path(__file__).parents[1] / "bench" / "paired_coverage.py"))
Design = BENCH["Design"]


def difference(b: int, c: int, n: int, copies: int = 1) -> PairedDifference:
    """Of b and c discordant pairs among n independent cases, each as often as `copies`."""
    first = [True] * b + [False] * (n - b)
    second = [False] * b + [True] * c + [False] * (n - b - c)
    groups = [i for i in range(n) for _ in range(copies)]
    return paired_difference(np.repeat(first, copies).tolist(), np.repeat(second, copies).tolist(), groups)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_the_p_value_is_mcnemar_s(b: int, c: int, rest: int) -> None:
    found = difference(b, c, b + c + rest)
    if b + c + rest < 6:
        assert not found.p_value < 0.05
    else:
        z = (b - c) / math.sqrt(b + c) if b + c else 0.0
        assert found.p_value == pytest.approx(max(2 * norm.sf(abs(z)), 2.0 ** (1 - b - c - rest)))


def score(d: float, b: int, c: int, n: int) -> float:
    """Tango's statistic, with the discordance of the greatest likelihood among those with the difference d."""

    def likelihood(only_second: float) -> float:
        return float(xlogy(b, only_second + d) + xlogy(c, only_second) + xlogy(n - b - c, 1.0 - 2 * only_second - d))

    bounds = max(0.0, -d), (1.0 - d) / 2
    found = minimize_scalar(lambda q: -likelihood(q), bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return abs(b - c - n * d) / math.sqrt(n * (2 * found.x + d - d**2))


@pytest.mark.parametrize(("b", "c", "n"), [(1, 7, 21), (1, 0, 50), (12, 2, 14), (20, 9, 300)])
def test_the_interval_is_tango_s(b: int, c: int, n: int) -> None:
    found, swapped = difference(b, c, n), difference(c, b, n)
    assert [score(end, b, c, n) for end in (found.low, found.high)] == pytest.approx([norm.isf(0.025)] * 2, rel=1e-4)
    assert (-swapped.high, -swapped.low) == pytest.approx((found.low, found.high), abs=1e-6)
    assert difference(0, 0, n).high == pytest.approx(norm.isf(0.025) ** 2 / (n + norm.isf(0.025) ** 2), abs=1e-6)


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.integers(0, 9)), min_size=1, max_size=60), st.booleans())
def test_the_interval_excludes_0_exactly_if_the_test_rejects_it(pairs: list[tuple[int, int]], grouped: bool) -> None:
    signs, groups = zip(*pairs, strict=True)
    found = paired_difference([s > 0 for s in signs], [s < 0 for s in signs], groups if grouped else None)
    assert (found.p_value < 0.05) == (not found.low <= 0.0 <= found.high)
    assert -1.0 <= found.low <= found.difference <= found.high <= 1.0


@pytest.mark.parametrize(("b", "c", "n"), [(9, 2, 40), (12, 0, 12), (0, 0, 30), (3, 3, 20)])
def test_copies_of_cases_are_no_further_cases(b: int, c: int, n: int) -> None:
    once, thrice = difference(b, c, n), difference(b, c, n, copies=3)
    assert (thrice.n, thrice.groups, once.groups) == (3 * n, n, n)
    assert (thrice.p_value, thrice.low, thrice.high) == pytest.approx((once.p_value, once.low, once.high), abs=1e-6)


@pytest.mark.parametrize("groups", range(1, 6))
def test_few_groups_show_nothing(groups: int) -> None:
    found = paired_difference([True] * 50, [False] * 50, [i % groups for i in range(50)])
    assert (found.low, found.high, found.groups) == (-1.0, 1.0, groups)
    assert found.p_value >= 0.0625


def test_unknown_outcomes_are_left_out() -> None:
    a = [True] * 6 + [False, True, None, False, math.nan]
    b = [False] * 6 + [True, True, True, False, True]
    found = paired_difference(a, b)
    assert (found.b, found.c, found.n, found.groups) == (6, 1, 9, 9)
    assert found.difference == pytest.approx(5 / 9)
    nothing = paired_difference([None, True], [True, None])
    assert nothing.n == 0
    assert all(math.isnan(each) for each in (nothing.difference, nothing.p_value, nothing.low, nothing.high))
    for wrong in ([True, False], [0.5]):
        refuses(r"2 outcomes of A|0\.5", paired_difference, wrong, [True])
    refuses("2 groups", paired_difference, [True], [True], ["a", "b"])
    refuses("level", paired_difference, [True], [True], None, 95.0)


@pytest.mark.parametrize(
    "design",
    [
        *(Design(n, 0.5) for n in (10, 20, 72, 300)),
        *(Design(n, 0.5, size=3, effect=effect) for n in (20, 72, 300) for effect in (0.0, 0.8)),
        *(Design(n, 0.5, 0.3, size, 0.8) for n in (20, 72, 300) for size in (1, 3)),
    ],
    ids=str,
)
def test_coverage_and_false_positives_are_the_stated_ones(design: Any) -> None:
    rates = BENCH["simulated"](design, 300)
    assert 0.92 <= rates.coverage <= 1.0
    assert design.difference or rates.positives <= 0.08
    assert rates.contradictions == 0.0


@given(st.lists(st.floats(-5, 5), min_size=10, max_size=30))
def test_a_mean_of_independent_cases_has_student_s_interval(values: list[float]) -> None:
    found = mean_difference(values)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-12)
    if np.std(values) > 1e-6:
        expected = ttest_1samp(values, 0.0)
        ends = expected.confidence_interval()
        assert (found.p_value, found.low, found.high) == pytest.approx((expected.pvalue, ends.low, ends.high), rel=1e-6)
        copies = mean_difference([*values, *values, None], [*range(len(values))] * 2 + [0])
        assert (copies.p_value, copies.low) == pytest.approx((found.p_value, found.low), rel=1e-6)
        assert (copies.n, copies.groups) == (2 * found.n, found.n)


@pytest.mark.parametrize(
    ("values", "p"),
    [
        ([], math.nan),
        ([None, math.nan], math.nan),
        ([1.0, 0.0] * 4, math.nan),
        ([1.0], 1.0),
        ([0.0] * 10, 1.0),
        ([-2.0] * 8, 2**-7),
        ([-2.0] * 10, 2**-9),
    ],
)
def test_a_mean_without_variation_has_no_interval(values: list[float | None], p: float) -> None:
    found = mean_difference(values)
    assert math.isnan(found.low)
    assert found.p_value == pytest.approx(p, nan_ok=True)
