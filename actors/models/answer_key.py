"""The answer key of the simulated model: from a question's text to its gold label.

Only the simulated agents hold one. Judges, templates and messages never see it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from sys import intern

from moot.protocols.case import LabelledCase
from moot.protocols.labels import fold
from moot.protocols.templates import unfenced

_AMBIGUOUS = ""


def _slot(question: str) -> int:
    folded = fold(unfenced(question)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(folded, digest_size=8).digest(), "little")


class AnswerKey:
    """Gold labels by question; it keeps 64-bit hashes of the questions, not their text."""

    def __init__(self, gold: dict[int, str] | None = None) -> None:
        self._gold = gold or {}

    @classmethod
    def from_cases(cls, cases: Iterable[LabelledCase]) -> AnswerKey:
        """The key of `cases`, read once and in one pass.

        Cases without a gold label, and rows that are no case, are left out. Of a question that stands in
        several cases with different gold labels the key knows nothing: the text alone cannot tell them apart.
        """
        gold: dict[int, str] = {}
        for labelled in cases:
            if labelled.gold is None or labelled.invalid:
                continue
            slot = _slot(labelled.case.question)
            if gold.setdefault(slot, intern(labelled.gold)) != labelled.gold:
                gold[slot] = _AMBIGUOUS
        return cls(gold)

    def find(self, question: str) -> str | None:
        """The gold label of a question as it stands in the file or in a prompt; None when it is not known.

        Case, surrounding quotes and marks, and white space do not matter.
        """
        return self._gold.get(_slot(question)) or None

    def __len__(self) -> int:
        """How many questions the key can answer."""
        return sum(label != _AMBIGUOUS for label in self._gold.values())
