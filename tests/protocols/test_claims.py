"""Hashes of claims: the same in every spelling, another for another text."""

from __future__ import annotations

import pytest

from moot.protocols.claims import text_hash

CLAIM = "Tim Roth isn't an English actor; he's 62 (Éire)."


@pytest.mark.parametrize(
    "spelling",
    [
        f"  {CLAIM} ",
        CLAIM.removesuffix("."),
        CLAIM.upper(),
        "Tim Roth is n't an English actor ; he 's 62 ( Éire ) .",
        "Tim\nRoth isn\u2019t an  English actor\u2014he\u2019s \uff16\uff12 (E\u0301ire)!",
    ],
)
def test_a_claim_is_itself_in_every_spelling(spelling: str) -> None:
    assert text_hash(spelling) == text_hash(CLAIM)


@pytest.mark.parametrize("other", [CLAIM.replace("62", "63"), CLAIM.replace("isn't", "is"), "", "?", "हिन्दी", "हन्द"])
def test_another_text_is_another(other: str) -> None:
    assert text_hash(other) != text_hash(CLAIM)


def test_texts_without_a_letter_are_distinguished_and_so_are_vowel_signs() -> None:
    texts = ["?", "!", "", "हिन्दी", "हन्द"]
    assert len({text_hash(text) for text in texts}) == len(texts)
    assert text_hash("\ud800 !") != text_hash("")
