"""Accumulators: equal to numpy, and mergeable in any order and grouping."""

import math
import pickle
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.metrics.online import Moments, Share

values = st.lists(st.floats(-1e4, 1e4))
shares = st.lists(st.booleans()).map(lambda outcomes: Share(sum(outcomes), len(outcomes)))


def moments_of(stream: list[float]) -> Moments:
    moments = Moments()
    for value in stream:
        moments.add(value)
    return moments


def same(a: Moments, b: Moments) -> bool:
    return astuple(a) == pytest.approx(astuple(b), rel=1e-9, abs=1e-6, nan_ok=True)


@settings(deadline=None)
@given(st.lists(st.floats(-1e4, 1e4), min_size=1))
def test_moments_equal_numpy(stream: list[float]) -> None:
    moments = moments_of(stream)
    assert moments.count == len(stream)
    assert moments.mean == pytest.approx(float(np.mean(stream)), abs=1e-8)
    assert moments.variance == pytest.approx(float(np.var(stream)), rel=1e-9, abs=1e-6)
    assert moments.std == math.sqrt(moments.variance)


@settings(deadline=None)
@given(values, values, values)
def test_moments_merge(a: list[float], b: list[float], c: list[float]) -> None:
    x, y, z = moments_of(a), moments_of(b), moments_of(c)
    before = astuple(x)
    assert same(x.merge(y), moments_of(a + b))
    assert same(x.merge(y), y.merge(x))
    assert same(x.merge(y).merge(z), x.merge(y.merge(z)))
    assert astuple(x) == pytest.approx(before, nan_ok=True)


def test_small_variance_on_a_large_mean_survives() -> None:
    stream = [1e9 + k for k in (4.0, 7.0, 13.0, 16.0)]
    assert moments_of(stream).variance == pytest.approx(22.5)
    assert moments_of(stream[:1]).merge(moments_of(stream[1:])).variance == pytest.approx(22.5)


def test_unknown_values_are_not_counted() -> None:
    moments = moments_of([1.0, math.nan, 3.0])
    moments.add(None)
    assert (moments.count, moments.mean, moments.variance) == (2, 2.0, 1.0)
    with pytest.raises(ValueError, match="inf"):
        moments.add(math.inf)
    assert moments.count == 2


def test_empty_moments_are_unknown() -> None:
    for empty in (Moments(), Moments().merge(Moments())):
        assert empty.count == 0
        assert all(math.isnan(number) for number in (empty.mean, empty.variance, empty.std))


def test_merging_does_not_share_state() -> None:
    first = moments_of([1.0, 2.0])
    merged = first.merge(Moments())
    merged.add(9.0)
    assert first == moments_of([1.0, 2.0])


@settings(deadline=None)
@given(shares, shares, shares)
def test_share_merge(a: Share, b: Share, c: Share) -> None:
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(b) == Share(a.successes + b.successes, a.n + b.n)
    assert a.merge(Share()) == a


def test_share() -> None:
    assert Share().value is None
    share = Share()
    for outcome in (True, False, None, True, True):
        share.add(outcome)
    assert (share.successes, share.n, share.value) == (3, 4, 0.75)
    assert Share(0, 2).value == 0.0
    with pytest.raises(ValueError, match="3 successes of 2"):
        Share(3, 2)


def test_they_travel_between_processes() -> None:
    assert pickle.loads(pickle.dumps(Share(1, 2))) == Share(1, 2)
    moments = moments_of([1.0, 2.5])
    assert pickle.loads(pickle.dumps(moments)) == moments
