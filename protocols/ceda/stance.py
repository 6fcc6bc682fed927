"""Stances on the claim: as stated by a debater, and as implied by its AGREE or DENY of the previous message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from moot.protocols.events import EventData
from moot.protocols.text.unicode_form import nfkc

Relation = Literal["AGREE", "DENY"]
About = Literal["claim", "message"]
Stance = Literal["supports", "denies"]

_ADVERB = r"(?:(?:fully|completely|entirely|strongly|firmly|respectfully|still|also|must)\s+)?"
_AGREE, _DENY = r"agree(?:s|d)?", r"(?:disagree(?:s|d)?|den(?:y|ies|ied))"
_FIRST = re.compile(rf"[\W_]*(?:i\s+{_ADVERB})?(?:(?P<agree>{_AGREE})|(?P<deny>{_DENY}))(?![^\W_])", re.IGNORECASE)
_SECOND = re.compile(rf"[^\w.!?;:]*(?:(?:and|or|to)\b[^\w.!?;:]*)*(?:{_AGREE}|{_DENY})(?![^\W_])", re.IGNORECASE)

_LABEL = re.compile(r"[\W_]*(?P<words>[^\W_]+(?:[ _-][^\W_]+){0,2})[\s*_\])]*:", re.IGNORECASE)
_NO_LABEL = re.compile(rf"\b(?:not|never|cannot|neither|{_AGREE}|{_DENY})\b", re.IGNORECASE)


class StatedPosition(EventData):
    """The stance of a message.

    Attributes:
        turn: the message's number, from 1.
        debater: the speaker: `debater/0` or `debater/1`.
        says: AGREE or DENY; None if it is neither.
        of: what AGREE or DENY refers to: the claim or the previous message.
        stance: stance on the claim; None if unknown.
        stated: whether the debater stated its stance; otherwise the stance is the `implied` one.
        implied: the stance that follows from `says`; None if unknown.
    """

    turn: int
    debater: str
    says: Relation | None
    of: About
    stance: Stance | None
    stated: bool = False
    implied: Stance | None = None


class ClaimMessage(StatedPosition):
    """Message of the debate; `text` is its original text."""

    text: str

    @property
    def is_contradictory(self) -> bool:
        """Whether the stated stance differs from the implied one."""
        return self.stated and None not in (self.stance, self.implied) and self.stance != self.implied


def relation_of(text: str) -> Relation | None:
    """Relation stated by the first word of a message, tolerant of marks, case, and "I agree"; None when unclear.

    One short label in front that ends in a colon is skipped.

    >>> relation_of("**Deny**: it opened in 1890."), relation_of("I agree, E1 says so."), relation_of("Turn 2: AGREE")
    ('DENY', 'AGREE', 'AGREE')
    >>> relation_of("AGREE/DENY: who knows") is None, relation_of("It is so. AGREE") is None
    (True, True)
    """
    plain = nfkc(text)
    first = _FIRST.match(plain) or _FIRST.match(plain, _label_s_end(plain))
    if first is None or _SECOND.match(plain, first.end()):
        return None
    return "AGREE" if first["agree"] else "DENY"


def _label_s_end(text: str) -> int:
    """End of a leading label such as `Turn 2:`; 0 without one."""
    label = _LABEL.match(text)
    return 0 if label is None or _NO_LABEL.search(label["words"]) else label.end()


def opposite(stance: Stance) -> Stance:
    """The opposite stance."""
    return "denies" if stance == "supports" else "supports"


def stance_of(says: Relation | None, of: About, last: Stance | None) -> Stance | None:
    """Stance on the claim implied by a relation to the claim, or to a message whose stance is `last`.

    >>> stance_of("DENY", "message", "denies")
    'supports'
    """
    known: Stance | None = "supports" if of == "claim" else last
    if says is None or known is None:
        return None
    return known if says == "AGREE" else opposite(known)


def about_what(messages: Sequence[ClaimMessage]) -> About:
    """Subject of the next turn: the last message, or the claim if no message has a known stance."""
    return "message" if messages and messages[-1].stance is not None else "claim"


def is_consensus(messages: Sequence[ClaimMessage]) -> bool:
    """Whether the last two messages, one of each debater, have the same known stance (the window of two turns)."""
    if len(messages) < 2:
        return False
    before, last = messages[-2:]
    return last.debater != before.debater and last.stance is not None and last.stance == before.stance
