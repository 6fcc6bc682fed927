"""Degenerate repetition: what is one, what is none, and that looking for it takes time that grows with the length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.text.repetition import SEEN_AT_ONCE, is_repetitive

PROSE = (
    "The passage says that the match was moved because of the rain that fell on Monday. It names no other reason, and "
    "the report of the club agrees with it. So the claim is supported, though the date differs by one day."
)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 400,
        "\n" * 400,
        "no " * 120,
        "The claim is true. " * 20,
        PROSE + " The claim is true." * 20,
        PROSE + "the same, " * 60 + PROSE,
        '{"answer": "Yes", "reasoning": "' + "ja, " * 120,
        "的" * 400,
        (PROSE[:150] + "\n") * 9,
    ],
)
def test_repetition_is_found(text: str) -> None:
    assert is_repetitive(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        PROSE,
        PROSE * 3,
        "-" * 200,
        "no " * 40,
        "".join(f"{number}. The claim is true.\n" for number in range(60)),
        "".join(f'{{"label": "L{number}", "probability": 0.02}}, ' for number in range(50)),
    ],
)
def test_what_is_no_repetition(text: str) -> None:
    assert not is_repetitive(text)


@given(st.text(min_size=1, max_size=200), st.text(max_size=300))
def test_whatever_is_repeated_and_comes_after_whatever(unit: str, before: str) -> None:
    written = before + unit * (SEEN_AT_ONCE // len(unit) + 1)
    assert is_repetitive(written[-SEEN_AT_ONCE - 64 :])


@pytest.mark.timeout(30)  # well below a second; at the square of the length it takes hours
@pytest.mark.parametrize("unit", ["ab", "a" * 100 + "b", "not no longer ", "a" * 11 + "bc" * 120])
def test_it_takes_time_that_grows_with_the_length(unit: str) -> None:
    is_repetitive("".join(f"{unit}{number}" for number in range(2**20 // len(unit))))
