"""What a person is told of a debate: what has happened since they last looked, in short, and all of it on request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from moot.actors.record.schema import BOOKKEEPING_EVENTS
from moot.deploy.reading.report.render import report_text
from moot.deploy.reading.show import debate_blocks
from moot.deploy.reading.text import visible, visible_line
from moot.deploy.reading.transcripts.blocks import turn_body, turn_head
from moot.deploy.reading.transcripts.shown import plain_pairs
from moot.deploy.reading.transcripts.transcript import transcript
from moot.deploy.reading.transcripts.views import EventView, TurnView
from moot.protocols.errors import ConfigError

_SHORT_TURN, _SHORT_EVENT, _SHORT_VALUE = 320, 240, 60
"""Characters that are shown of a turn, of an event, and of one of its values."""

_UNTOLD = BOOKKEEPING_EVENTS | {"parked", "superseded", "moderation"}
"""Events that say nothing to the person who moderates: the form itself does."""


class Story:
    """One debate, as it is told to the person who moderates it.

    Args:
        folder: the run's folder.
        case_id: of the debate.
    """

    def __init__(self, folder: Path, case_id: str) -> None:
        self._folder, self._case_id = folder, case_id
        self._turns: list[TurnView] = []
        self._told: set[tuple[str, str]] = set()

    def news(self) -> RenderableType | None:
        """What has happened since the last call, in short, each turn with its number; None when nothing has.

        Raises:
            RecordError: the record cannot be read.
        """
        parts: list[RenderableType] = []
        for section in transcript(self._folder, self._case_id).sections:
            found = [*self._new_turns(section.turns), *self._new_events(section.events)]
            if found:
                parts += [Text(visible_line(section.title), style="bold underline"), *found]
        return Group(*parts) if parts else None

    def whole(self) -> RenderableType:
        """The debate so far.

        Raises:
            RecordError: the record cannot be read.
        """
        return report_text(debate_blocks(transcript(self._folder, self._case_id)))

    def turn(self, number: int) -> RenderableType:
        """A turn that `news` has told, whole.

        Raises:
            ConfigError: no turn has that number.
        """
        if not 1 <= number <= len(self._turns):
            raise ConfigError(f"there is no turn {number}: the last one is {len(self._turns)}")
        turn = self._turns[number - 1]
        return Group(_head(number, turn), Padding(Text(visible(turn_body(turn))), (0, 0, 0, 4), expand=False))

    def _new_turns(self, turns: Iterable[TurnView]) -> Iterable[RenderableType]:
        """The debaters' turns in short; the judges' by number only: what they found is in the events."""
        told = {(turn.path, turn.text): turn for turn in turns if not turn.superseded}
        new = [turn for key, turn in told.items() if key not in self._told]
        self._told |= told.keys()
        judging = [turn for turn in new if turn.role.startswith("judge")]
        for turn in new:
            if turn.role == "person":
                yield Text(visible_line(_decided(turn)), style="bold")
            elif turn not in judging:
                self._turns.append(turn)
                yield from _in_short(len(self._turns), turn)
        if judging:
            first = len(self._turns) + 1
            self._turns += judging
            numbers = f"{first}" if len(judging) == 1 else f"{first} to {len(self._turns)}"
            yield Text(f"[{numbers}] replies of judges  (show {first}: all of it)")

    def _new_events(self, events: Iterable[EventView]) -> Iterable[RenderableType]:
        for event in events:
            facts = _facts(event)
            told = (f"{event.kind} at {event.path}", facts)
            if told in self._told or event.kind in _UNTOLD:
                continue
            self._told.add(told)
            yield Text(f"{visible_line(told[0])}: {facts}", style="cyan")


def _head(number: int, turn: TurnView) -> Text:
    style = "bold red" if turn.outcome in ("failed", "invalid") else "bold"
    return Text(f"[{number}] {visible_line(turn_head(turn))}", style=style)


def _in_short(number: int, turn: TurnView) -> Iterable[RenderableType]:
    yield _head(number, turn)
    if body := visible_line(turn_body(turn)):
        hint = f"  (show {number}: all of it)" if len(body) > _SHORT_TURN else ""
        yield Padding(Text(_cut(body, _SHORT_TURN) + hint), (0, 0, 0, 4), expand=False)


def _decided(turn: TurnView) -> str:
    data = turn.data or {}
    who = "you" if turn.model == "person" else turn.model
    text = _cut(visible_line(str(data.get("text", ""))), _SHORT_TURN)
    return f"{who} decided: {data.get('action', 'unknown')}{f': {text}' if text else ''}"


def _facts(event: EventView) -> str:
    """An event's short values in a line, no deeper than one level; the rest is for `show`."""
    flat = {
        name: value for name, value in event.data.items() if not isinstance(value, Mapping | list) or _is_flat(value)
    }
    pairs = ((name, visible_line(value)) for name, value in plain_pairs(flat))
    said = [f"{name} {value}" for name, value in pairs if value != "-" and len(value) <= _SHORT_VALUE]
    said += [f"{name} {visible_line(titles)}" for name, value in event.data.items() if (titles := _titles(value))]
    return _cut("; ".join(said), _SHORT_EVENT)


def _titles(value: Any) -> str:
    """The titles in a list of things that have one, such as topics."""
    titled = isinstance(value, list) and all(isinstance(each, Mapping) and "title" in each for each in value)
    return ", ".join(str(each["title"]) for each in value) if titled else ""


def _is_flat(value: Mapping[str, Any] | list[Any]) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value
    return not any(isinstance(each, Mapping | list) for each in inner)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}\u2026"
