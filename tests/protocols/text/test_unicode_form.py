"""NFKC in parts is the NFKC of the whole, and a run of combining marks holds nothing up."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.text.unicode_form import nfkc

LETTERS = "aé b\n한\u1112\u1161\u11abが\u304b\u3099ﬁ①\uff21。नि\u0928\u093f\u093c\u0301\u0323"


@given(st.lists(st.text(alphabet=LETTERS, min_size=1, max_size=12), min_size=1, max_size=9), st.integers(20, 120))
def test_the_parts_are_the_whole(words: list[str], times: int) -> None:
    text = "".join(f"a{word}" for word in words) * times
    assert nfkc(text) == unicodedata.normalize("NFKC", text)


@pytest.mark.timeout(30)  # half a second; at the square of the length it takes many minutes
def test_a_long_run_of_combining_marks_is_read_in_time_that_grows_with_its_length() -> None:
    assert len(nfkc("a" + "\u0301\u0323" * 2**18)) > 2**18
