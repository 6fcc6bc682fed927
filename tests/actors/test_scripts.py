"""What a text may cost by its script: Latin texts as ever, others no less than they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.actors.models.token_bounds import bytes_per_character, estimated_length, prompt_bound, text_estimate
from moot.protocols.messages import Message

LATIN = st.text(st.characters(min_codepoint=32, max_codepoint=0x17F), max_size=300)
OTHER = st.text(st.sampled_from("яжשسعही字漢한テ😀🎉"), min_size=1, max_size=300)


@given(LATIN)
def test_latin_texts_count_as_ever(text: str) -> None:
    assert estimated_length(text) == len(text)
    assert text_estimate(text) == len(text) // 4
    assert bytes_per_character([text]) == 1


@given(OTHER)
def test_other_texts_are_estimated_at_a_token_a_character_and_bound_by_their_bytes(text: str) -> None:
    assert text_estimate(text) == len(text)
    assert len(text) <= len(text.encode()) <= prompt_bound([Message("user", text)])


@pytest.mark.parametrize(
    ("text", "each"), [("Где он?", 2), ("أين هو؟", 2), ("他在哪里", 3), ("वह कहाँ है", 3), ("😀🎉🎉", 4)]
)
def test_a_character_is_bound_by_its_bytes(text: str, each: int) -> None:
    assert bytes_per_character([text, ""]) == each
