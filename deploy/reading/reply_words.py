"""A structured reply in words: a line per list item, so that a debate reads like one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moot.deploy.reading.transcript_signals import plain_pairs


def reply_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Keys with their values; of a list each item has a line, an object in it as its text and then its numbers.

    >>> list(reply_lines({"claim": "Flu", "reasons": [{"text": "fever", "validity": 8, "is_claim": True}]}))
    ['claim: Flu', 'reasons:', '  - fever (validity 8, is_claim)']
    """
    for key, value in data.items():
        if isinstance(value, list) and value:
            yield f"{key}:"
            yield from (f"  - {_item(item)}" for item in value)
        else:
            yield from (f"{name}: {text}" for name, text in plain_pairs({key: value}))


def _item(item: Any) -> str:
    if not isinstance(item, Mapping):
        return next((text for _, text in plain_pairs({"": item})), "-")
    named = {key: value for key, value in item.items() if value is not False and value not in ([], "", None)}
    first = next((key for key, value in named.items() if isinstance(value, str)), None)
    numbers = plain_pairs({key: value for key, value in named.items() if key != first})
    rest = ", ".join(key if text == "yes" else f"{key} {text}" for key, text in numbers)
    if first is None:
        return rest or "-"
    return f"{named[first]} ({rest})" if rest else str(named[first])
