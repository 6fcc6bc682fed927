"""The 152 features against a plain loop over replies, what is unknown, and what the features are called."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from scipy.stats import linregress

from moot.metrics import confidence_features
from moot.metrics.confidence_features import (
    LEAST_LOGPROB,
    STATISTICS,
    WINDOWS,
    features,
    window_features,
    window_statistic,
)
from moot.metrics.ragged import RaggedArray

NAMES = [feature.name.removeprefix("logprob.") for feature in features("logprob")]

token_values = st.one_of(st.floats(-30.0, 0.0), st.sampled_from([-0.1, -0.0, -1e-7])).map(
    lambda value: value if value < -1e-100 or not value else 0.0
)  # squares of smaller ones are 0 to scipy
replies_of_values = st.lists(st.lists(token_values, max_size=130), max_size=6)


def cut(values: Sequence[float], window: str) -> Sequence[float]:
    """The window's values, by slicing; none when there is no such window."""
    end, _, size = window.partition("-")
    if not size:
        return values
    count = len(values) * int(size[:-1]) // 100 if size.endswith("%") else int(size)
    if count > len(values):
        return ()
    return values[:count] if end == "first" else values[len(values) - count :]


def one_by_one(values: Sequence[float]) -> list[float]:
    """The 152 numbers of a reply, in the plainest way."""
    found: list[float] = []
    for window in WINDOWS:
        held = np.array(cut(values, window))
        if not len(held) or not np.isfinite(held).all() or held.min() <= LEAST_LOGPROB:
            found += [math.nan] * 8
            continue
        of = {
            "mean": held.mean(),
            "median": np.median(held),
            "min": held.min(),
            "max": held.max(),
            "range": held.max() - held.min(),
            "variance": held.var(),
            "std": held.std(),
            "slope": linregress(range(len(held)), held).slope if len(held) > 1 else math.nan,
        }
        found += [float(of[statistic]) for statistic in STATISTICS]
    return found


def of(values: Sequence[float]) -> dict[str, float]:
    """A reply's features by name."""
    return dict(zip(NAMES, window_features(RaggedArray.from_lists([values]))[0].tolist(), strict=True))


@given(replies_of_values)
def test_each_feature_is_numpys_or_scipys(replies: list[list[float]]) -> None:
    found = window_features(RaggedArray.from_lists(replies))
    assert found.shape == (len(replies), 152)
    for row, values in zip(found, replies, strict=True):
        np.testing.assert_allclose(row, one_by_one(values), rtol=1e-9, atol=1e-10)


@given(replies_of_values, st.sampled_from([math.nan, -math.inf, math.inf, -9999.0, LEAST_LOGPROB]), st.randoms())
def test_an_unknown_value_makes_only_the_windows_with_it_unknown(
    replies: list[list[float]], unknown: float, random: object
) -> None:
    poisoned = [list(values) for values in replies]
    for values in poisoned[::2]:
        if values:
            values[random.randrange(len(values))] = unknown  # type: ignore[attr-defined]
    found = window_features(RaggedArray.from_lists(poisoned))
    for row, values in zip(found, poisoned, strict=True):
        np.testing.assert_allclose(row, one_by_one(values), rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(found[1::2], window_features(RaggedArray.from_lists(replies))[1::2])


@pytest.mark.parametrize("cells", [1, 7, 100, 5000])
def test_the_size_of_the_blocks_changes_nothing(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    replies = [-random.exponential(size=size) for size in random.integers(0, 90, size=60)]
    whole = window_features(RaggedArray.from_lists(replies))
    monkeypatch.setattr(confidence_features, "_CELLS", cells)
    np.testing.assert_array_equal(window_features(RaggedArray.from_lists(replies)), whole)
    assert np.isfinite(whole).any(axis=0).all()


def test_windows_are_those_of_the_early_stop() -> None:
    values = -np.random.default_rng(1).exponential(size=70)
    found = of(values.tolist())
    for k in (3, 5, 10, 20, 30, 50):
        for statistic in STATISTICS:
            assert found[f"first-{k}.{statistic}"] == pytest.approx(float(window_statistic(values[:k], statistic)))


@given(st.floats(-30.0, 0.0), st.integers(2, 120))
def test_equal_values_have_no_spread_at_all(value: float, length: int) -> None:
    found = of([value] * length)
    for name, number in found.items():
        if name.endswith((".range", ".variance", ".std", ".slope")) and not math.isnan(number):
            assert number == 0.0, name
        elif not math.isnan(number):
            assert number == value, name


def test_tiny_spreads_far_from_zero_are_not_lost() -> None:
    values = -5.0 + 1e-9 * np.array([1.0, -1.0, 1.0, -1.0])
    assert of(values.tolist())["full.std"] == pytest.approx(1e-9, rel=1e-5)
    first = [-1e-7, -2e-7, -4e-7, *([-6.0] * 50)]
    assert of(first)["first-3.variance"] == pytest.approx(np.var(first[:3]), rel=1e-12)


def test_one_long_reply_among_many_short_ones_does_not_widen_their_matrix() -> None:
    sizes = np.array([*[3] * 5000, 200_000])
    replies = RaggedArray(np.full(sizes.sum(), -0.5), np.concatenate([[0], np.cumsum(sizes)]))
    tracemalloc.start()
    found = window_features(replies)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50 * 2**20  # in one padded matrix: 8 GB
    assert found[-1, NAMES.index("full.mean")] == found[0, NAMES.index("first-3.mean")] == -0.5


def test_features_from_content_are_those_of_the_rest() -> None:
    replies = RaggedArray.from_lists([[-9.0, -9.0, -1.0, -2.0, -3.0], [-9.0, -9.0]])
    found = window_features(replies.from_starts([2, 2]))
    column = [feature.name for feature in features("logprob", "content")].index("logprob.content.first-3.mean")
    assert found[0, column] == -2.0
    assert np.isnan(found[1]).all()


def test_the_papers_names_and_their_orientation() -> None:
    every = features("logprob")
    assert len(every) == len(WINDOWS) * len(STATISTICS) == 152
    words = {feature.words: feature for feature in every}
    assert len(words) == 152
    for printed, orientation in {
        "Full-response median": 1,
        "Final-half mean": 1,
        "Max of first 3 tokens": 1,
        "Min of first 3 tokens": 1,
        "Range of first 3 tokens": -1,
        "Std. dev. of first 5 tokens": -1,
        "Variance of first 3 tokens": -1,
        "Slope over first 30 tokens": 0,
        "Full-response slope": 0,
    }.items():
        assert words[printed].orientation == orientation, printed
    assert words["Mean of last 25 % of tokens"].window == "last-25%"


@pytest.mark.parametrize("unknown", [float("nan"), float("-inf")])
def test_a_window_with_an_unknown_value_is_unknown_and_leaves_the_others_alone(unknown: float) -> None:
    for name in STATISTICS:
        found = window_statistic([[-1.0, unknown, -2.0], [-1.0, -3.0, -2.0]], name)
        assert np.isnan(found).tolist() == [True, False], name


def test_one_token_has_no_slope_and_no_token_no_statistic() -> None:
    assert np.isnan(window_statistic([-1.0], "slope"))
    assert float(window_statistic([-1.0], "std")) == 0.0
    refuses("at least one token", window_statistic, [], "mean")
