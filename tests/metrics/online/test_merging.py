"""Merging of online accumulators: parts in any order give the result of all rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.metrics.online.divergence_counts import JointCounts
from moot.metrics.online.moments import CoMoments, Moments
from moot.metrics.online.quantile_bands import QuantileBands

Floats = npt.NDArray[np.float64]

NAN = float("nan")
VALUES = st.one_of(st.just(NAN), st.integers(-9, 9).map(float), st.floats(-50, 50))
REPLY = (
    st.sampled_from([NAN, -1e-6, -0.01, -0.3, -0.31, -2.0, -40.0]),
    st.sampled_from([NAN, 0.0, 13 / 3, 5.0, 31 / 6, 8.0, 9.0, 12.0]),
    st.sampled_from([NAN, 0.0, 1 / 3, 0.5, 1.0]),
    st.sampled_from([NAN, 0.0, 1.0]),
)


class CountedColumn(NamedTuple):
    """What is counted: of which columns, how, what nothing is, and the numbers in it."""

    columns: tuple[st.SearchStrategy[float], ...]
    of: Callable[[Floats], Any]
    empty: Any
    fields: tuple[str, ...]


COUNTED = {
    "joint counts": CountedColumn(
        REPLY, lambda rows: JointCounts.of(*rows.T), JointCounts.empty(), ("cells", "counts")
    ),
    "co-moments": CountedColumn(
        (VALUES,) * 5,
        lambda rows: CoMoments.of(rows[:, :3], rows[:, 3:]),
        CoMoments.empty(3, 2),
        ("n", "mean_x", "mean_y", "m2_x", "m2_y", "c"),
    ),
    "moments": CountedColumn((VALUES,) * 3, Moments.of, Moments.empty(3), ("n", "mean", "m2")),
    "quantile bands": CountedColumn(
        (st.one_of(st.just(NAN), st.floats(-90.0, 0.0)),) * 3, QuantileBands.of, QuantileBands.empty(3), ("counts",)
    ),
}


@pytest.mark.parametrize("name", COUNTED)
@given(data=st.data())
def test_any_order_of_merging_gives_the_figures_of_all(name: str, data: st.DataObject) -> None:
    columns, of, empty, fields = COUNTED[name]
    rows = st.lists(st.tuples(*columns), max_size=8)
    a, b, c = (np.array(data.draw(rows), np.float64).reshape(-1, len(columns)) for _ in range(3))
    one, two, three = of(a), of(b), of(c)
    whole = of(np.concatenate((a, b, c)))
    for merged, expected in (
        (one.merge(two).merge(three), whole),
        (one.merge(two.merge(three)), whole),
        (three.merge(two).merge(one), whole),
        (one.merge(empty), one),
        (empty.merge(one), one),
    ):
        for field in fields:
            found, wanted = getattr(merged, field), getattr(expected, field)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-6, err_msg=field)
