"""Claims: statements that are checked, and the two labels of every such case."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

from moot.protocols.case import Case
from moot.protocols.text.unicode_form import nfkc

SUPPORTED, HALLUCINATED = "supported", "hallucinated"

CLAIM_LABELS = (SUPPORTED, HALLUCINATED)
"""Labels of a claim, in the order in which prompts list them."""

CLAIM_ALIASES = (("correct", "true", "not hallucinated", "1"), ("incorrect", "wrong", "false", "not supported", "0"))
"""Other spellings of each of `CLAIM_LABELS`."""


def is_claim(case: Case) -> bool:
    """Whether a case is a claim to check: its question is the claim, its labels are `CLAIM_LABELS`."""
    return case.labels == CLAIM_LABELS


def classified_label(p_hallucinated: float) -> str:
    """Label for a probability of "hallucinated": hallucinated from 0.5 on.

    >>> classified_label(0.5), classified_label(0.499)
    ('hallucinated', 'supported')
    """
    return HALLUCINATED if p_hallucinated >= 0.5 else SUPPORTED


def is_bare_question(claim: str) -> bool:
    """Whether a claim is a question without an answer, so that the meaning of "supported" is open.

    >>> is_bare_question("Is it free?"), is_bare_question(answered_claim("Is it free?", "Yes"))
    (True, False)
    """
    return claim.rstrip().endswith(("?", "\uff1f", "\u061f")) and "\nAnswer:" not in claim


def answered_claim(question: str, answer: str) -> str:
    """Claim that `answer` is right for `question`.

    >>> answered_claim("Who wrote Emma?", "Jane Austen")
    'Question: Who wrote Emma?\\nAnswer: Jane Austen'
    """
    return f"Question: {question.strip()}\nAnswer: {answer.strip()}"


def text_hash(text: str) -> str:
    """Hash of a text's letters and digits, case folded, as 32 hex digits: equal for every spelling of a text.

    It identifies a claim, or the name of its source, in another file, format or passage. Texts that differ in signs
    only, such as -5 and 5, have equal hashes too; a text without any letter or digit is hashed unchanged.

    >>> text_hash("Is n't  it 5 o'clock ?") == text_hash("isn't it 5 O'Clock"), text_hash("5") == text_hash("6")
    (True, False)
    """
    folded = nfkc(nfkc(text).casefold())
    kept = "".join(each for each in folded if each.isalnum() or unicodedata.category(each).startswith("M"))
    return blake2b((kept or text.strip()).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
