"""Limits that a reply type states for whoever holds a model to its schema; no reply is refused for them.

A model that is held to a schema could fill one text until its tokens run out, and would then never reach the fields
behind it. What reads replies stays generous: a longer text of a model that is not held is as good as a short one.
"""

from __future__ import annotations

from typing import Any

CASE_LABEL = "x-case-label"
"""Key of a schema whose text is one of the case's labels, where the case has a closed set of them."""


def longest(characters: int) -> dict[str, Any]:
    """Extra keys for a text's schema: at most so many characters.

    >>> longest(80)
    {'maxLength': 80}
    """
    return {"maxLength": characters}


def most(items: int) -> dict[str, Any]:
    """Extra keys for a list's schema: at most so many items.

    >>> most(5)
    {'maxItems': 5}
    """
    return {"maxItems": items}


def case_label(characters: int = 120) -> dict[str, Any]:
    """Extra keys for the schema of a text that names a label of the case, or is a short answer where it has none."""
    return {CASE_LABEL: True, "maxLength": characters}
