"""What a person is told of a debate: what has happened since they last looked, in short, and all of it on request."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from moot.actors.record.schema import BOOKKEEPING_EVENTS
from moot.deploy.reading.text import visible, visible_line
from moot.deploy.reading.transcripts.selene import plain_pairs
from moot.deploy.reading.transcripts.text import transcript_text, turn_body, turn_head
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
        self._known: set[str] = set()

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
        return transcript_text(transcript(self._folder, self._case_id))

    def turn(self, number: int) -> RenderableType:
        """A turn that `news` has told, whole.

        Raises:
            ConfigError: no turn has that number.
        """
        if not 1 <= number <= len(self._turns):
            raise ConfigError(f"there is no turn {number}: the last one is {len(self._turns)}")
        turn = self._turns[number - 1]
        return Group(_head(number, turn), Padding(Text(visible(turn_body(turn))), (0, 0, 0, 4), expand=False))

    def knows(self, path: str) -> None:
        """The person has decided this themselves just now: it is no news."""
        self._known.add(path)

    def _new_turns(self, turns: Iterable[TurnView]) -> Iterable[RenderableType]:
        for turn in turns:
            told = (turn.path, turn.text)
            if told in self._told or turn.superseded or turn.path in self._known:
                continue
            self._told.add(told)
            if turn.role == "person":
                yield Text(visible_line(_decided(turn)), style="bold")
                continue
            self._turns.append(turn)
            yield _head(len(self._turns), turn)
            if body := visible_line(turn_body(turn)):
                hint = f"  (show {len(self._turns)}: all of it)" if len(body) > _SHORT_TURN else ""
                yield Padding(Text(_cut(body, _SHORT_TURN) + hint), (0, 0, 0, 4), expand=False)

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


def _decided(turn: TurnView) -> str:
    data = turn.data or {}
    who = "you" if turn.model == "person" else turn.model
    text = _cut(visible_line(str(data.get("text", ""))), _SHORT_TURN)
    return f"{who} decided: {data.get('action', 'unknown')}{f': {text}' if text else ''}"


def _facts(event: EventView) -> str:
    """An event's short values in a line; the long ones are for `show`."""
    pairs = ((name, visible_line(value)) for name, value in plain_pairs(event.data))
    return _cut("; ".join(f"{name} {value}" for name, value in pairs if len(value) <= _SHORT_VALUE), _SHORT_EVENT)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}\u2026"
