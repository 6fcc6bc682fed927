"""Bounds of a token's entropy against whole distributions of which a server lists the top."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refuses
from scipy.stats import entropy as scipy_entropy

from moot.metrics import token_entropy
from moot.metrics.ragged import RaggedArray
from moot.metrics.token_entropy import entropy_lower, entropy_renormalised, entropy_upper

Floats = npt.NDArray[np.float64]

VOCABULARY = 12

distributions = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.just(VOCABULARY)), elements=st.floats(0.01, 1.0)
).map(lambda weights: np.sort(weights**6 / (weights**6).sum(axis=1, keepdims=True), axis=1)[:, ::-1])


def one_reply(logprobs: npt.ArrayLike) -> RaggedArray:
    """A reply of these tokens, or of these tokens' alternatives."""
    return RaggedArray.from_lists([np.asarray(logprobs, np.float64).ravel()])


def bounds(
    chosen: npt.ArrayLike, listed: npt.ArrayLike, vocabulary: int = VOCABULARY
) -> tuple[list[float], list[float]]:
    """Lower and upper bound of each token's entropy."""
    one, all_ = one_reply(chosen), one_reply(listed)
    return entropy_lower(one, all_).values.tolist(), entropy_upper(one, all_, vocabulary).values.tolist()


@given(distributions, st.integers(1, VOCABULARY), st.data())
def test_the_true_entropy_lies_between_the_bounds(p: Floats, k: int, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=len(p), max_size=len(p)))
    chosen = np.log(p[np.arange(len(p)), drawn])
    low, high = bounds(chosen, np.log(p[:, :k]))
    truth = scipy_entropy(p, axis=1)
    assert (np.array(low) <= truth + 1e-9).all()
    assert (np.array(high) >= truth - 1e-9).all()


@given(distributions)
def test_with_the_whole_distribution_all_three_are_its_entropy(p: Floats) -> None:
    truth = scipy_entropy(p, axis=1)
    chosen, listed = np.log(p[:, -1]), np.log(p)
    low, high = bounds(chosen, listed)
    assert low == pytest.approx(truth, abs=1e-9)
    assert high == pytest.approx(truth, abs=1e-9)
    assert entropy_renormalised(one_reply(chosen), one_reply(listed)).values == pytest.approx(truth, abs=1e-9)


@given(distributions, st.integers(2, VOCABULARY - 2))
def test_the_bounds_are_reached(p: Floats, k: int) -> None:
    """Whatever is not listed as concentrated, or as even, as the listed leave room for."""
    head, rest, cap = p[:, :k], 1 - p[:, :k].sum(axis=1), p[:, k - 1]
    full = np.floor(rest / cap)
    packed = np.array(
        [scipy_entropy([*row, *[c] * int(m), r - m * c]) for row, r, c, m in zip(head, rest, cap, full, strict=True)]
    )
    even = np.array(
        [scipy_entropy([*row, *[r / (VOCABULARY - k)] * (VOCABULARY - k)]) for row, r in zip(head, rest, strict=True)]
    )
    low, high = bounds(np.log(p[:, 0]), np.log(head))
    ties = np.isclose(p[:, 0], cap, rtol=1e-3)  # the chosen token may be the last of the list: a looser bound
    assert np.array(low)[~ties] == pytest.approx(packed[~ties], abs=1e-9)
    assert high == pytest.approx(even, abs=1e-9)


@given(distributions, st.integers(1, 5), st.data())
def test_more_alternatives_never_widen_the_bounds(p: Floats, k: int, data: st.DataObject) -> None:
    more = data.draw(st.integers(k, VOCABULARY))
    chosen = np.log(p[:, 0])
    (low, high), (tighter_low, tighter_high) = bounds(chosen, np.log(p[:, :k])), bounds(chosen, np.log(p[:, :more]))
    assert (np.array(tighter_low) >= np.array(low) - 1e-9).all()
    assert (np.array(tighter_high) <= np.array(high) + 1e-9).all()


def test_a_chosen_token_that_is_not_listed_counts_once_whether_or_not_the_server_appends_it() -> None:
    p = np.array([0.5, 0.2, 0.1, 0.05, 0.05, 0.04, 0.03, 0.01, 0.01, 0.005, 0.003, 0.002])
    chosen = np.log(p[-1:])
    apart, appended = np.log(p[:3]), np.log([*p[:3], p[-1]])
    low, high = bounds(chosen, apart)
    assert bounds(chosen, appended) == (low, high)
    assert low[0] == pytest.approx(scipy_entropy([0.5, 0.2, 0.1, 0.1, 0.098, 0.002]))
    assert high[0] == pytest.approx(scipy_entropy([0.5, 0.2, 0.1, 0.002, *[0.198 / 8] * 8]))
    renormalised = [
        entropy_renormalised(one_reply(chosen), one_reply(listed)).values[0] for listed in (apart, appended)
    ]
    assert renormalised[0] == renormalised[1] == pytest.approx(scipy_entropy([0.5, 0.2, 0.1, 0.002]))


def test_a_chosen_token_rounded_apart_from_the_list_is_not_counted_twice() -> None:
    listed = np.log([0.6, 0.3])
    exact, rounded = (bounds([value], listed) for value in (listed[1], listed[1] - 1e-5))
    assert exact == rounded


def test_an_unknown_chosen_token_leaves_what_is_listed() -> None:
    listed = np.log([0.6, 0.3])
    assert bounds([math.nan], listed) == bounds([math.log(0.6)], listed)
    assert bounds([-9999.0], listed) == bounds([math.log(0.6)], listed)


@pytest.mark.parametrize("filler", [math.nan, -math.inf, -9999.0])
def test_padding_and_stand_ins_for_impossible_count_as_not_listed(filler: float) -> None:
    chosen = np.log([0.5, 0.9])
    padded = [math.log(0.5), math.log(0.3), filler, math.log(0.9), filler, filler]
    low, high = bounds(chosen, padded)
    assert low == pytest.approx([scipy_entropy([0.5, 0.3, 0.2]), scipy_entropy([0.9, 0.1])])
    assert high == pytest.approx([scipy_entropy([0.5, 0.3, *[0.02] * 10]), scipy_entropy([0.9, *[0.1 / 11] * 11])])


def test_without_alternatives_or_a_vocabulary_nothing_is_known() -> None:
    chosen = RaggedArray.from_lists([[-0.1, -0.2], [], [-0.3]])
    alternatives = RaggedArray.from_lists([[], [], [math.nan, math.nan]])
    for found in (
        entropy_lower(chosen, alternatives),
        entropy_upper(chosen, alternatives, 100),
        entropy_renormalised(chosen, alternatives),
        entropy_upper(chosen, RaggedArray.from_lists([[-0.1, -0.2], [], [-0.3]])),
    ):
        assert np.isnan(found.values).tolist() == [True] * 3
        assert found.lengths.tolist() == [2, 0, 1]


@pytest.mark.parametrize(("chosen", "listed"), [(-0.1, [-0.1, -0.1]), (0.5, [-1.0, -2.0]), (-0.5, [0.3, -2.0])])
def test_probabilities_that_cannot_be_are_unknown(chosen: float, listed: list[float]) -> None:
    low, high = bounds([chosen], listed)
    assert np.isnan([*low, *high]).all()


def test_rounding_above_one_is_a_certain_token() -> None:
    low, high = bounds([0.0], [1e-6, -20.0])
    assert low == pytest.approx([0.0], abs=1e-6)
    assert high == pytest.approx([0.0], abs=1e-6)
    one, all_ = one_reply([0.0]), one_reply([0.0, math.nan])
    for certain in (entropy_lower(one, all_), entropy_upper(one, all_, 1), entropy_renormalised(one, all_)):
        assert str(certain.values[0]) == "0.0"  # not -0.0, which a table would show


@pytest.mark.parametrize("cells", [1, 5, 1000])
def test_replies_of_other_widths_are_each_as_alone(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_entropy, "_CELLS", cells)
    random = np.random.default_rng(6)
    chosen, listed = [], []
    for tokens, k in ((4, 5), (0, 3), (7, 2), (3, 5), (2, 0), (1, 20)):
        p = -np.sort(-random.dirichlet(np.full(40, 0.3), size=tokens), axis=1)
        chosen.append(np.log(p[:, 0]))
        listed.append(np.log(p[:, :k]).ravel())
    together = RaggedArray.from_lists(chosen), RaggedArray.from_lists(listed)
    for measure in (entropy_lower, entropy_renormalised, lambda one, all_: entropy_upper(one, all_, 40)):
        found = measure(*together)
        for i in range(6):
            alone = measure(RaggedArray.from_lists([chosen[i]]), RaggedArray.from_lists([listed[i]]))
            np.testing.assert_array_equal(found.row(i), alone.values)
    assert np.isfinite(entropy_lower(*together).values).sum() == 15


def test_rows_that_do_not_fit_are_refused() -> None:
    refuses(
        "row 1",
        entropy_lower,
        RaggedArray.from_lists([[-0.1], [-0.1, -0.2]]),
        RaggedArray.from_lists([[-0.1], [-0.1] * 3]),
    )
    refuses("row 0", entropy_lower, RaggedArray.from_lists([[]]), RaggedArray.from_lists([[-0.1]]))
    refuses("2 rows", entropy_lower, RaggedArray.from_lists([[]]), RaggedArray.from_lists([[], []]))
    refuses("vocabulary of 2", bounds, np.log([0.5]), np.log([0.5, 0.3, 0.1]), vocabulary=2)


def test_a_list_that_no_vocabulary_could_go_with_has_no_bound() -> None:
    chosen = RaggedArray.from_lists([[np.log(0.5)]])
    assert np.isnan(entropy_lower(chosen, RaggedArray.from_lists([[np.log(0.5), -5000.0]])).values).all()
