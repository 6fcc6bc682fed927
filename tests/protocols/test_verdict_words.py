"""Verdict words are masked wherever they occur; the rest of a text is unchanged."""

from __future__ import annotations

import pytest

from moot.protocols.claims import CLAIM_LABELS
from moot.protocols.verdict_words import MASK, VERDICT_WORDS, mask_verdict_words


@pytest.mark.parametrize("word", [*VERDICT_WORDS, *CLAIM_LABELS, "AGREE", "Deny", "HALLUCINATED"])
def test_every_word_is_masked_whatever_its_case_and_negation(word: str) -> None:
    for form in (word, word.upper(), f"not {word}", f"is not {word}", f"isn't {word}", f"**{word}**", f"({word})"):
        masked = mask_verdict_words(f"Hence it {form}, as E1 says.")
        assert word.casefold() not in masked.casefold()
        assert "not" not in masked
        assert MASK in masked
        assert masked.endswith(", as E1 says.")


@pytest.mark.parametrize(
    "text",
    [
        "E1 and E2 give 1969 and 1971.",
        "Bright lights over 10 towns",
        "the verdict of 12 jurors",
        "a supporter's trueness",
    ],
)
def test_other_words_and_numbers_stay(text: str) -> None:
    assert mask_verdict_words(text) == text


def test_masking_twice_changes_nothing() -> None:
    once = mask_verdict_words("The verdict is 1: it is not false and wholly supported.")
    assert mask_verdict_words(once) == once


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("E1 corroborates the claim.", "E1 undermines the claim."),
        ("The claim is substantiated by E2.", "The claim is a myth by E2."),
        ("The claim can be verified.", "The claim cannot be verified."),
        ("The claim is borne out by E1.", "The claim is not borne out by E1."),
        ("The claim is right", "The claim can't be right"),
        ("The claim matches E1.", "The claim does not match E1."),
        ("The claim stands.", "The claim fails."),
        ("It is factual.", "It is non-factual."),
        ("It was well-founded.", "It was never true."),
        ("The evidence confirms it.", "The evidence debunks it."),
        ("The claim is accurate.", "The claim is factually inaccurate."),
        ("It holds up.", "It is bogus and misleading."),
        ("The verdict is one.", "The verdict is zero."),
        ("Verdict\n1", "Verdict\n0"),
        ("The judge gives a 1.", "The judge gives a 0."),
        ("label -> 1", "label -> 0"),
        ("Probability of a hallucination: 0.05", "Probability of a hallucination: 95 %"),
    ],
)
def test_what_is_left_of_two_opposite_verdicts_is_the_same(good: str, bad: str) -> None:
    def left(text: str) -> str:
        masked = mask_verdict_words(text)
        while f"{MASK} {MASK}" in masked:
            masked = masked.replace(f"{MASK} {MASK}", MASK)
        return masked

    assert left(good) == left(bad)
