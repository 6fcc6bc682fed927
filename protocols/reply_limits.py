"""Limits that a reply type states for whoever holds a model to its schema; no reply is refused for them.

A model that is constrained to a schema could fill one text until its tokens run out, and would then never reach the
fields behind it. What reads replies stays generous: without the constraint, a longer text is as good as a short one.
"""

from __future__ import annotations

from typing import Any

CASE_LABEL = "x-case-label"
"""Key of a schema whose text is one of the case's labels, where the case has a closed set of them."""


SIZE_SLOT = "x-size-slot"
"""Key of the schema of a list or an integer that is bound by a slot of the ask: a number or a list's length."""


def longest(characters: int) -> dict[str, Any]:
    """Extra keys for a text's schema: at most so many characters.

    >>> longest(80)
    {'maxLength': 80}
    """
    return {"maxLength": characters}


def most(items: int, slot: str = "") -> dict[str, Any]:
    """Extra keys for a list's schema: at most so many items, or as many as the slot of that name says.

    >>> most(5)
    {'maxItems': 5}
    """
    return {"maxItems": items, **(sized_by(slot) if slot else {})}


def sized_by(slot: str) -> dict[str, Any]:
    """Extra keys for the schema of a list or an integer: at most what the ask's slot says."""
    return {SIZE_SLOT: slot}


def case_label(characters: int = 120) -> dict[str, Any]:
    """Extra keys for the schema of a text that names a label of the case, or is a short answer where it has none."""
    return {CASE_LABEL: True, "maxLength": characters}
