"""A structured reply in words: a line per item of a list, and a distribution in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moot.deploy.reading.transcripts.selene import plain_pairs

_LIKELIHOOD = {"label", "probability"}
_LONG = 40
"""Characters from which the texts of a list have lines of their own."""


def reply_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Keys with their values; of objects or long texts in a list each has a line, an object as its text and numbers.

    >>> list(reply_lines({"claim": "Flu", "reasons": [{"text": "fever", "validity": 8, "is_claim": True}]}))
    ['claim: Flu', 'reasons:', '  - fever (validity 8, is_claim)']
    """
    for key, value in data.items():
        several = value if isinstance(value, list) else []
        if several and all(isinstance(item, Mapping) and item.keys() == _LIKELIHOOD for item in several):
            yield f"{key}: " + ", ".join(f"{item['label']} {item['probability']}" for item in several)
        elif any(isinstance(item, Mapping) or len(str(item)) > _LONG for item in several):
            yield f"{key}:"
            yield from (f"  - {_item(item)}" for item in several)
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
