"""The hashed n-gram encoder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder

ENCODER = HashedNgramEncoder()
TEXTS = ["Can penguins fly?", "", "été 東京 \U0001f427", "x" * 500]


def cosine(first: str, second: str) -> float:
    a, b = ENCODER.rows([first, second])
    return float(a @ b)


@given(st.text(max_size=60), st.sampled_from([1, 2, 7, 512]))
def test_rows_are_unit_vectors(text: str, dimension: int) -> None:
    (row,) = HashedNgramEncoder(dimension).rows([text])
    assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-6)


@given(st.lists(st.text(max_size=20), max_size=6), st.randoms(use_true_random=False))
def test_a_row_depends_on_its_text_only(texts: list[str], random: object) -> None:
    rows = ENCODER.rows(texts)
    np.testing.assert_array_equal(ENCODER.rows(texts[::-1]), rows[::-1])


def test_the_vectors_of_version_1_do_not_change() -> None:
    """Embeddings are stored under the encoder's name: another vector needs another version."""
    (row,) = ENCODER.rows(["penguins"])
    places = np.flatnonzero(row)
    assert places.tolist() == [92, 168, 169, 222, 239, 244, 258, 282, 417]
    word, triple = 0.710669, 0.248734  # 1 and 0.35 over the length of the row
    signs = np.array([-1, -1, 1, 1, 1, -1, -1, 1, -1])
    sizes = np.where(places == 417, word, triple)
    np.testing.assert_allclose(row[places], signs * sizes, atol=1e-6)
    assert np.flatnonzero(ENCODER.rows(["a b"])[0]).tolist() == [
        16,
        161,
        204,
        324,
        356,
    ]  # two words, two triples, one pair


def test_shared_words_bring_texts_together() -> None:
    near = cosine("can penguins fly", "penguins can fly")
    assert near > 0.6
    assert near > 5 * abs(cosine("can penguins fly", "the treaty was signed in Vienna"))
    assert cosine("Can PENGUINS fly?", "can penguins fly") == pytest.approx(1.0, abs=1e-6)
    assert cosine("penguin", "penguins") > cosine("penguin", "dolphins")
