"""Mean pairwise cosine distance against scipy, and what must not matter to it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refuses
from scipy.special import expit

from moot.metrics.disagreement import confidence_misalignment, semantic_disagreement, sigmoid_of_log_probability

embeddings = st.tuples(st.integers(2, 7), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-1e3, 1e3).map(lambda x: round(x, 3)))
)


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


def test_extreme_scales_keep_their_direction() -> None:
    assert semantic_disagreement([[1e300, 1e300], [1e-300, 1e-300]]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "rows", [np.zeros((0, 3)), np.ones((1, 3)), [[1.0, math.nan], [1.0, 0.0]], [[math.inf, 0.0], [1.0, 0.0]]]
)
def test_unknown_is_nan(rows: np.ndarray) -> None:
    assert math.isnan(semantic_disagreement(rows))


@pytest.mark.parametrize("rows", [[1.0, 2.0], np.ones((2, 2, 2))])
def test_refuses_other_shapes(rows: np.ndarray) -> None:
    refuses("shape", semantic_disagreement, rows)


maybe = st.one_of(st.none(), st.just(math.nan), st.floats(0.0, 1.0))


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1), st.lists(maybe))
def test_unknown_agents_change_nothing(pairs: list[tuple[float, float]], stated: list[float | None]) -> None:
    c = [pair[0] for pair in pairs]
    p = [pair[1] for pair in pairs]
    known = confidence_misalignment(c, p)
    assert 0.0 <= known <= 1.0
    assert known == pytest.approx(sum(abs(a - b) for a, b in pairs) / len(pairs))
    assert confidence_misalignment([*stated, *c], [*[None] * len(stated), *p]) == known
    assert confidence_misalignment([*[None] * len(stated), *p], [*stated, *c]) == known


@given(st.floats(1e-300, 1.0))
def test_sigma_of_log_p(p: float) -> None:
    assert sigmoid_of_log_probability(p) == pytest.approx(float(expit(math.log(p))), rel=1e-9)


def test_what_is_no_probability_is_refused_and_nobody_known_is_nan() -> None:
    assert math.isnan(confidence_misalignment([0.9, 0.1], [None, math.nan]))
    refuses("2 stated", confidence_misalignment, [0.1, 0.2], [0.1])
    refuses("must be in", confidence_misalignment, [90.0], [None])


def test_printed_confidence_makes_a_calibrated_agent_look_misaligned() -> None:
    printed = confidence_misalignment([0.95], [sigmoid_of_log_probability(0.95)])
    assert printed == pytest.approx(0.463, abs=5e-4)
    assert confidence_misalignment([0.95], [0.95]) == 0.0
