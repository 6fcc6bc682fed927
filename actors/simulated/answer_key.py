"""Answer key of the simulated model: gold labels by the text of a case.

Only the simulated agents have one. Judges, templates and messages never see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from sys import intern

from moot.protocols.case import LabelledCase
from moot.protocols.templates import unfenced
from moot.protocols.text.folding import fold

_AMBIGUOUS = ""


def _slot(question: str, passage: str = "") -> int:
    parts = [question, passage] if passage else [question]
    folded = "\x1f".join(fold(unfenced(text)) for text in parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(folded, digest_size=8).digest(), "little")


class AnswerKey:
    """Gold labels by question, and by question and passage; stores 64-bit hashes, not the texts.

    Args:
        slots: see the property `slots` of another key.
    """

    def __init__(self, slots: Mapping[int, str] | None = None) -> None:
        self._gold = dict(slots or {})
        self._known = sum(label != _AMBIGUOUS for label in self._gold.values())

    @classmethod
    def from_cases(cls, cases: Iterable[LabelledCase]) -> AnswerKey:
        """Answer key of `cases`, read in one pass.

        Cases without a gold label and invalid rows are skipped. A question of several cases with different gold labels
        is stored together with its passage only; if the passages are equal too, its label is unknown.
        """
        gold: dict[int, str] = {}
        with_passage: dict[int, str] = {}
        for labelled in cases:
            if labelled.gold is None or labelled.invalid:
                continue
            case, label = labelled.case, intern(labelled.gold)
            _put(gold, _slot(case.question), label)
            if case.passage:
                _put(with_passage, _slot(case.question, case.passage), label)
        return cls(gold | with_passage if _AMBIGUOUS in gold.values() else gold)

    def find(self, question: str, passage: str = "") -> str | None:
        """Gold label of a question as written in the file or in a prompt; None when unknown.

        Case, surrounding quotes and marks, and white space are ignored; so is the passage, unless cases differ only in
        it.
        """
        if found := self._gold.get(_slot(question)):
            return found
        return (passage and self._gold.get(_slot(question, passage))) or None

    def needs_passage(self, question: str) -> bool:
        """Whether several cases ask this question with different gold labels."""
        return self._gold.get(_slot(question)) == _AMBIGUOUS

    @property
    def slots(self) -> dict[int, str]:
        """Labels by hash, without any text, for copying the key."""
        return dict(self._gold)

    def __len__(self) -> int:
        """Number of questions, alone or with a passage, with a known label."""
        return self._known


def _put(gold: dict[int, str], slot: int, label: str) -> None:
    if gold.setdefault(slot, label) != label:
        gold[slot] = _AMBIGUOUS
