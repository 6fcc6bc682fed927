"""What is read: a text that argues for a claim, and what belongs to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """A text that argues for a claim.

    Attributes:
        claim: what it argues for; empty to let each judge find it.
        text: what is read; a blank text is never put before a judge, and has no score.
        facts: what is given and not in dispute, e.g. a patient's symptoms; arguments are checked against it.
        opposing: what the other side says; rival reasons are looked for in it, too.
        sources: texts in which a reason that is itself a claim is looked up; without any, the text itself serves.
    """

    claim: str
    text: str
    facts: str = ""
    opposing: str = ""
    sources: tuple[str, ...] = ()
