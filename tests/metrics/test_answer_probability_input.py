"""Where the answer's token is found, and which inputs are refused."""

import math
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.metrics.answer_probability import answer_probability, fold_spelling

YES_NO = {"yes": "Yes", "true": "Yes", "no": "No", "false": "No"}


def test_only_the_answers_position_is_read() -> None:
    tokens = ['{"a": "', "Yes", '", "', "no"]
    alt = ["No", "Yes", "Yes", "No", "No", "no", "no", "Yes"]
    p = np.log(np.array([[0.9, 0.1], [0.6, 0.2], [0.5, 0.5], [0.99, 0.01]], dtype=np.float32))
    at_yes = answer_probability(tokens, p[:, 0], alt, p, 7, YES_NO)
    assert at_yes.normalised == pytest.approx(0.75, rel=1e-5)
    at_no = answer_probability(tokens, p[:, 0], alt, p, 14, YES_NO)
    assert at_no.normalised == pytest.approx(0.99, rel=1e-5)


def test_a_token_of_space_and_quotes_is_passed_over() -> None:
    tokens = ["answer:", " ", "No", "."]
    p = np.log(np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.2], [0.5, 0.5]], dtype=np.float32))
    alt = ["x", "y", " ", "Yes", "No", "yes", ".", ","]
    assert answer_probability(tokens, p[:, 0], alt, p, 7, YES_NO).normalised == pytest.approx(0.75, rel=1e-5)


@pytest.mark.parametrize("answer_start", [-1, 8, 500])
def test_no_answer_there(answer_start: int) -> None:
    p = np.zeros((2, 1), dtype=np.float32)
    found = answer_probability(["Yes", " and "], p[:, 0], ["Yes", "x"], p, answer_start, YES_NO)
    assert (found.normalised, found.printed, found.raw) == (None, None, None)
    assert math.isnan(found.bound_shift)
    assert "no answer" in found.reason


def test_rounding_above_one_is_cut() -> None:
    over = np.full((1, 2), 1e-4, dtype=np.float32)
    found = answer_probability(["Yes"], over[:, 0], ["Yes", "yes"], over, 0, YES_NO)
    assert (found.raw, found.printed, found.normalised) == (1.0, 0.5, 1.0)
    wild = np.full((1, 1), 800.0, dtype=np.float32)
    assert answer_probability(["Yes"], wild[:, 0], ["Yes"], wild, 0, YES_NO).raw == 1.0


def test_refuses_bad_input() -> None:
    p = np.zeros((1, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="1 tokens"):
        answer_probability(["Yes"], np.zeros(2, np.float32), ["Yes", "no"], p, 0, YES_NO)
    with pytest.raises(ValueError, match="do not fit"):
        answer_probability(["Yes"], p[:, 0], ["Yes"], p, 0, YES_NO)
    with pytest.raises(ValueError, match="do not fit"):
        answer_probability(["Yes"], p[:, 0], ["Yes", "no"], p[0], 0, YES_NO)
    for forms in ({}, {"": "Yes"}):
        with pytest.raises(ValueError, match="forms"):
            answer_probability(["Yes"], p[:, 0], ["Yes", "no"], p, 0, forms)


def test_fold_spelling() -> None:
    assert fold_spelling(" “Yes”\n") == "yes"
    assert fold_spelling("Not Sure") == "not sure"


@given(st.integers(0, 3), st.text(string.ascii_letters + " {:", max_size=12))
def test_where_the_tokens_are_cut_does_not_move_the_answer(cut: int, before: str) -> None:
    """The same answer, whether its token starts before, at or after the quote's neighbours."""
    text = before + '": "'
    at = len(text) - cut
    tokens = [text[:at], text[at:] + "No", '"}']
    p = np.log(np.array([[0.5, 0.5], [0.75, 0.25], [0.5, 0.5]], dtype=np.float32))
    alt = ["", "", tokens[1], text[at:] + "Yes", "", ""]
    found = answer_probability(tokens, p[:, 0], alt, p, len(text), YES_NO)
    assert found.normalised == pytest.approx(0.75, rel=1e-5)
