"""The words by which a judge's summary gives its verdict away, and a summary without them.

A classifier of summaries may do no more than read the verdict. What it can tell when these words are gone is what the
argument itself says.
"""

from __future__ import annotations

import re

VERDICT_WORDS = (
    "accurate", "accurately", "accuracy", "affirmed", "affirms", "agree", "agreed", "agrees", "backed", "backs",
    "baseless", "confirm", "confirmed", "confirms", "consistent", "contradict", "contradicted", "contradicting",
    "contradiction", "contradictory", "contradicts", "correct", "correctly", "correctness", "deny", "denied", "denies",
    "disagree", "disagreed", "disagrees", "disproved", "disproves", "erroneous", "erroneously", "error", "fabricated",
    "fabrication", "factual", "false", "falsely", "falsehood", "grounded", "hallucinate", "hallucinated",
    "hallucinates", "hallucination", "hold", "holds", "inaccurate", "inaccurately", "incompatible", "inconsistent",
    "incorrect", "incorrectly", "invalid", "invented", "mistaken", "no", "proved", "proven", "proves", "refute",
    "refuted", "refutes", "rejected", "rejects", "reject", "right", "rightly", "sound", "support", "supported",
    "supporting", "supports", "true", "truth", "truthful", "unconfirmed", "unfounded", "ungrounded", "unproven",
    "unsubstantiated", "unsupported", "untrue", "untruth", "upheld", "valid", "validated", "verified", "verifies",
    "wrong", "wrongly", "yes",
)  # fmt: skip
"""Compared without regard to case; a negation before one goes with it."""

MASK = "\N{HORIZONTAL ELLIPSIS}"
"""What stands where a word was."""

_WORD = "|".join(sorted(VERDICT_WORDS, key=len, reverse=True))
_NEGATION = r"(?:\b(?:is|are|was|were|do|does|did|has|have|had|can|could)?\s*(?:not|never|n[o'\u2019]t|cannot)\s+)?"
_VERDICT = re.compile(rf"{_NEGATION}\b(?:{_WORD})\b", re.IGNORECASE)
_DIGIT = re.compile(
    r"\b(?:verdict|label|ruling|judge?ment|decision|answer|class|rating)\b[^\w\n]*"
    r"(?:(?:is|was|of|as|to|be|at|will|should|would)\b[^\w\n]*)*[01]\b(?!\.\d)",
    re.IGNORECASE,
)


def mask_verdict_words(text: str) -> str:
    """The text with every verdict word, and every verdict given as a digit, replaced by `MASK`.

    >>> mask_verdict_words("The claim is not supported: verdict is 0. Both found 1 source wrong.")
    'The claim …: …. Both found 1 source ….'
    >>> mask_verdict_words("Paris lies on the Seine in 100 of 100 documents.")
    'Paris lies on the Seine in 100 of 100 documents.'
    """
    return _VERDICT.sub(MASK, _DIGIT.sub(MASK, text))
