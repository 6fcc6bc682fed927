"""Mean pairwise cosine distance against scipy, and what must not matter to it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist

from moot.metrics.disagreement import semantic_disagreement

embeddings = st.tuples(st.integers(2, 7), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-1e3, 1e3).map(lambda x: round(x, 3)))
)


@pytest.mark.parametrize(("n", "d"), [(2, 3), (3, 384), (12, 5)])
def test_equals_scipy(n: int, d: int) -> None:
    rows = np.random.default_rng(n).normal(size=(n, d))
    assert semantic_disagreement(rows) == pytest.approx(float(pdist(rows, "cosine").mean()), abs=1e-12)


def test_float32_equals_scipy() -> None:
    rows = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    expected = float(pdist(rows.astype(np.float64), "cosine").mean())
    assert semantic_disagreement(rows) == pytest.approx(expected, abs=1e-12)


@given(embeddings)
def test_equals_the_definition_with_zero_rows(rows: np.ndarray) -> None:
    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        lengths = math.hypot(*a) * math.hypot(*b)
        return float(a @ b) / lengths if lengths else 0.0

    n = len(rows)
    gaps = [1 - cosine(rows[i], rows[j]) for i in range(n) for j in range(i)]
    value = semantic_disagreement(rows)
    assert value == pytest.approx(sum(gaps) / len(gaps), abs=1e-9)
    assert 0.0 <= value <= 2.0


@given(embeddings, st.data())
def test_order_and_length_do_not_matter(rows: np.ndarray, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(rows))))
    scale = data.draw(arrays(np.float64, (len(rows), 1), elements=st.floats(0.01, 100.0)))
    changed = (rows * scale)[order]
    assert semantic_disagreement(changed) == pytest.approx(semantic_disagreement(rows), abs=1e-9)


def test_known_values() -> None:
    assert semantic_disagreement([[0.3, 0.4]] * 4) == pytest.approx(0.0, abs=1e-15)
    assert semantic_disagreement([[1.0], [-1.0]]) == 2.0
    assert semantic_disagreement([[1.0], [1.0], [-1.0]]) == pytest.approx(4 / 3)


def test_a_zero_row_has_cosine_zero_with_every_row() -> None:
    assert semantic_disagreement([[0.0, 0.0], [1.0, 0.0]]) == 1.0
    assert semantic_disagreement([[0.0, 0.0], [0.0, 0.0]]) == 1.0
    assert semantic_disagreement([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]) == pytest.approx(2 / 3)


def test_rounding_does_not_leave_the_range() -> None:
    rng = np.random.default_rng(0)
    for row in rng.normal(size=(200, 16)):
        assert semantic_disagreement([row, row, row]) >= 0.0
        assert semantic_disagreement([row, -row]) <= 2.0


def test_extreme_scales_keep_their_direction() -> None:
    assert semantic_disagreement([[1e300, 1e300], [1e-300, 1e-300]]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "rows", [np.zeros((0, 3)), np.ones((1, 3)), [[1.0, math.nan], [1.0, 0.0]], [[math.inf, 0.0], [1.0, 0.0]]]
)
def test_unknown_is_nan(rows: np.ndarray) -> None:
    assert math.isnan(semantic_disagreement(rows))


@pytest.mark.parametrize("rows", [[1.0, 2.0], np.ones((2, 2, 2))])
def test_refuses_other_shapes(rows: np.ndarray) -> None:
    with pytest.raises(ValueError, match="shape"):
        semantic_disagreement(rows)
