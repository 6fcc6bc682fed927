"""Histograms of any real value: merged in any order, taken out again, quantiles within their stated error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.metrics.online.value_histogram import ValueHistogram

SHARES = (0.10, 0.25, 0.50, 0.75, 0.90)


def test_parts_in_any_order_are_the_whole() -> None:
    draw = np.random.default_rng(3)
    values = np.concatenate((draw.normal(0.0, 0.3, 900), np.zeros(50), draw.exponential(2.0, 300)))
    values[draw.random(len(values)) < 0.1] = np.nan
    whole = ValueHistogram.of(values)
    parts = [ValueHistogram.of(part) for part in np.array_split(draw.permutation(values), 30)]
    merged = ValueHistogram.empty()
    for place in draw.permutation(len(parts)):
        merged = merged.merge(parts[place])
    assert (merged.bins.tolist(), merged.counts.tolist()) == (whole.bins.tolist(), whole.counts.tolist())
    assert (merged.n, merged.unknown) == (int((~np.isnan(values)).sum()), int(np.isnan(values).sum()))
    assert merged.mean == pytest.approx(np.nanmean(values))
    expected = np.nanquantile(values, SHARES, method="inverted_cdf")
    assert merged.quantiles(SHARES) == pytest.approx(expected, rel=0.00251, abs=1e-4)
    rest = merged.without(parts[0])
    others = ValueHistogram.empty()
    for part in parts[1:]:
        others = others.merge(part)
    assert (rest.bins.tolist(), rest.counts.tolist()) == (others.bins.tolist(), others.counts.tolist())
    assert rest.unknown == others.unknown
    assert rest.mean == pytest.approx(others.mean)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=12), st.data())
def test_values_of_any_size_are_merged_and_taken_out(values: list[float], data: st.DataObject) -> None:
    """After a value without bound is taken out, the mean of the others is as if it had never been counted."""
    parts = [ValueHistogram.of(np.array([value])) for value in values]
    merged = ValueHistogram.empty()
    for part in data.draw(st.permutations(parts)):
        merged = merged.merge(part)
    taken = data.draw(st.sets(st.sampled_from(range(len(values))))) if values else set()
    for place in taken:
        merged = merged.without(parts[place])
    rest = np.array([value for place, value in enumerate(values) if place not in taken])
    whole = ValueHistogram.of(rest)
    assert (merged.bins.tolist(), merged.counts.tolist()) == (whole.bins.tolist(), whole.counts.tolist())
    largest = np.abs(rest).max(initial=0.0)
    assert merged.mean == pytest.approx(whole.mean, rel=0, abs=1e-12 * largest, nan_ok=True)
    assert math.isfinite(merged.mean) == bool(len(rest))
    for median in merged.quantiles((0.5,)) if len(rest) else ():
        exact = float(np.quantile(rest, 0.5, method="inverted_cdf"))
        assert abs(exact) / 1.4143 - 1e-4 <= abs(median) <= abs(exact) * 1.4143 + 1e-4
    assert (np.diff(merged.quantiles(SHARES)) >= 0).all() or not len(rest)


def test_what_is_unknown_is_no_zero() -> None:
    unknown = ValueHistogram.of(np.array([np.nan, np.nan]))
    assert (unknown.n, unknown.unknown) == (0, 2)
    assert np.isnan([unknown.mean, *unknown.quantiles(SHARES)]).all()
    assert ValueHistogram.of(np.array([0.0, np.nan])).quantiles((0.5,)).tolist() == [0.0]
    assert ValueHistogram.of(np.array([np.inf, -np.inf])).unknown == 2


def test_what_was_taken_out_leaves_nothing_behind() -> None:
    odd = ValueHistogram.of(np.array([1e17]))
    assert ValueHistogram.of(np.array([0.2, 0.3, 1e17])).without(odd).mean == pytest.approx(0.25)
    assert ValueHistogram.of(np.array([1e308, 1e308, -1e308])).mean == pytest.approx(1e308 / 3)


def test_memory_does_not_grow_with_the_number_of_values() -> None:
    values = np.random.default_rng(0).lognormal(-2.0, 2.0, 200_000)
    assert len(ValueHistogram.of(np.concatenate((values, -values))).bins) < 5_600
