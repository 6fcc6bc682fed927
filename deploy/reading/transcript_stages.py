"""The stages of a debate, told by the paths of its replies and events."""

from __future__ import annotations

import re
from collections.abc import Iterable

from moot.actors.record.rows import INVALID_SUFFIX
from moot.deploy.reading.transcript_views import EventView, Section, TurnView

_STAGES = (
    (re.compile(r"opening/"), "Independent answers"),
    (re.compile(r"vote/"), "Further answers for the vote"),
    (re.compile(r"resample/"), "The same question again, to estimate p"),
    (re.compile(r"gate$"), "Gate"),
    (re.compile(r"round/(\d+)(/|$)"), "Round {}"),
    (re.compile(r"stop$"), "Why the debate stopped"),
    (re.compile(r"evidence/"), "Evidence in other words"),
    (re.compile(r"judge(/|$)"), "Judging"),
    (re.compile(r"(audit(/|$)|branches$)"), "Audit"),
)


def sections_of(turns: Iterable[TurnView], events: Iterable[EventView]) -> list[Section]:
    """Replies and events by stage; paths that no stage knows come last, by their first part."""
    sections: dict[tuple[tuple[int, int, str], str], tuple[list[TurnView], list[EventView]]] = {}
    for turn in sorted(turns, key=lambda each: (natural(each.path.removesuffix(INVALID_SUFFIX)), not each.superseded)):
        sections.setdefault(_stage(turn.path), ([], []))[0].append(turn)
    for event in sorted(events, key=lambda each: (natural(each.path), each.kind)):
        sections.setdefault(_stage(event.path), ([], []))[1].append(event)
    return [
        Section(title=title, turns=_invalid_first(found), events=noted)
        for (_, title), (found, noted) in sorted(sections.items(), key=lambda item: item[0])
    ]


def _invalid_first(turns: list[TurnView]) -> list[TurnView]:
    """In order, an unreadable first reply before the one that followed it."""
    places = {turn.path: i for i, turn in reversed(list(enumerate(turns)))}
    return sorted(
        turns, key=lambda t: (places.get(t.path.removesuffix(INVALID_SUFFIX), places[t.path]), t.outcome != "invalid")
    )


def _stage(path: str) -> tuple[tuple[int, int, str], str]:
    for rank, (pattern, title) in enumerate(_STAGES):
        found = pattern.match(path)
        if found:
            number = int(found[1]) if "{}" in title else 0
            return (rank, number, ""), title.format(number)
    first = path.partition("/")[0]
    return (len(_STAGES), 0, first), first


def natural(path: str) -> tuple[tuple[int, int, str], ...]:
    """A key that orders the numbers in paths as numbers.

    >>> natural("round/2/agent/0") < natural("round/10/agent/0")
    True
    """
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in path.split("/"))
