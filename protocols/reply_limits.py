"""Limits that a reply type declares for constrained decoding; no reply is refused because of them.

A model constrained to a schema could fill one text until its tokens run out, and would never reach the next fields. The
parser of replies has no such limits: without the constraint, a longer text is as good as a short one.
"""

from __future__ import annotations

from typing import Any

CASE_LABEL = "x-case-label"
"""Schema key that marks a text as one of the case's labels, if it has a closed set of them."""


SIZE_SLOT = "x-size-slot"
"""Schema key that bounds a list or an integer by a slot of the ask: a number or a list's length."""


def longest(characters: int) -> dict[str, Any]:
    """Extra keys for a text's schema: at most `characters` characters.

    >>> longest(80)
    {'maxLength': 80}
    """
    return {"maxLength": characters}


def most(items: int, slot: str = "") -> dict[str, Any]:
    """Extra keys for a list's schema: at most `items` items, or the bound in the slot of that name.

    >>> most(5)
    {'maxItems': 5}
    """
    return {"maxItems": items, **(sized_by(slot) if slot else {})}


def sized_by(slot: str) -> dict[str, Any]:
    """Extra keys for the schema of a list or an integer: at most the bound in the ask's slot."""
    return {SIZE_SLOT: slot}


def case_label(characters: int = 120) -> dict[str, Any]:
    """Extra keys for the schema of a text that names a label of the case, or is a short answer where it has none."""
    return {CASE_LABEL: True, "maxLength": characters}
