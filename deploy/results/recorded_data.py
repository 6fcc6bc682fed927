"""Generic formatting of recorded data: an event as blocks, data as pairs, a reply as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from moot.deploy.results.report.blocks import Block, Items, Note, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.text import number
from moot.protocols.events import DebateEvent

_LIKELIHOOD = {"label", "probability"}
_LONG = 40
"""Length in characters above which texts of a list have lines of their own."""


class EventView(FrozenModel):
    """Recorded event of a debate, such as signals, a decision or a judging."""

    kind: str
    path: str
    data: dict[str, Any]


Kinds = Sequence[tuple[type[DebateEvent], Callable[[EventView, Any], list[Block] | None]]]
"""Known types of events with the function of their report blocks; types of one kind differ in their form."""


def titled_blocks(
    title: str,
    header: Sequence[str] = (),
    rows: Sequence[Sequence[str]] = (),
    lines: Sequence[str] = (),
) -> list[Block]:
    """Report blocks of an event: a title, a table if there are rows, and further lines."""
    found: list[Block] = [Note(title, "strong")]
    found += [Table("", header, rows)] if rows else []
    return found + ([Items(lines)] if lines else [])


def place_words(path: str, role: str = "") -> str:
    """Text of a path; that of a reply is without its role.

    >>> place_words("judge/candidate/0/judge/1/variant/2/pass/0"), place_words("round/2"), place_words("gate")
    ('candidate 0, judge 1, evidence variant 2, pass 0', 'round 2', 'gate')
    """
    step = f"{path}/".replace(f"/{role}/", "/").rstrip("/") if role else path
    return ", ".join(numbered_places(step)) or path.replace("/", " ")


def numbered_places(path: str) -> list[str]:
    """Texts of the numbered parts of a path.

    >>> numbered_places("judge/candidate/0/variant/2"), numbered_places("gate")
    (['candidate 0', 'evidence variant 2'], [])
    """
    return [
        f"{'evidence variant' if name == 'variant' else name} {number}"
        for name, number in pairwise(path.split("/"))
        if number.isdecimal() and not name.isdecimal()
    ]


def plain_pairs(data: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Pairs of dotted keys and formatted values of nested data."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from plain_pairs(value, f"{name}.")
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            yield from plain_pairs({str(i): each for i, each in enumerate(value)}, f"{name}.")
        elif isinstance(value, list):
            yield name, ", ".join(map(_word, value)) or "-"
        else:
            yield name, _word(value)


def _word(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == {}:
        return "-"
    return number(value, 4) if isinstance(value, float) else str(value)


def reply_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Lines of keys and values of a reply; objects and long texts in a list have a line each.

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
