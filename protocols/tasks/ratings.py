"""What human raters' scores of a text say of the right answer."""

from __future__ import annotations

from collections.abc import Sequence

from moot.protocols.case import Reference


def rated(ratings: Sequence[float | None], group: str, part: str = "") -> tuple[str | None, Reference]:
    """The gold label and the reference of a text that raters scored.

    Every whole score that a rater gave is accepted, and the first of them is the gold label: where raters differ,
    none of them is wrong. Without any there is no gold label. Raises nothing.

    Args:
        ratings: by rater, None where one is missing.
        group, part: see `Reference`.

    >>> rated((None, 2.0, 3.0), "essay-1")[0]
    '2'
    """
    accepted = tuple(dict.fromkeys(f"{score:.0f}" for score in ratings if score is not None and score.is_integer()))
    reference = Reference(scoring="score", accepted=accepted, ratings=tuple(ratings), group=group, part=part)
    return (accepted[0] if accepted else None), reference
