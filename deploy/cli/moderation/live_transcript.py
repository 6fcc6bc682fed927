"""Incremental transcript of a debate for the person who moderates it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, RenderableType

from moot.actors.record.schema import BOOKKEEPING_EVENTS
from moot.deploy.results.recorded_data import EventView, TurnView
from moot.deploy.results.report.blocks import Block, Heading, Note
from moot.deploy.results.report.render import report_text
from moot.deploy.results.show import debate_blocks
from moot.deploy.results.transcript import build_transcript
from moot.deploy.results.transcript_blocks import section_blocks

_HIDDEN_EVENTS = BOOKKEEPING_EVENTS | {"parked", "superseded", "moderation"}
"""Events without information beyond that of the form."""


class DebateTranscript:
    """Transcript of one debate, as printed for the person who moderates it.

    Args:
        folder: the run's folder.
        case_id: the debate's case.
    """

    def __init__(self, folder: Path, case_id: str) -> None:
        self._folder, self._case_id = folder, case_id
        self._printed: set[tuple[str, str]] = set()

    def print_new(self, console: Console) -> None:
        """Print turns and events since the last call, without the replies of judges, whose results are in the events.

        Raises:
            RecordError: the record cannot be read.
        """
        blocks: list[Block] = []
        for section in build_transcript(self._folder, self._case_id, under_way=True).sections:
            turns = [turn for turn in section.turns if self._is_new_turn(turn)]
            spoken = [turn for turn in turns if turn.role != "person"]
            events = [event for event in section.events if self._is_new_event(event)]
            blocks += [Note(_decision_line(turn), "strong") for turn in turns if turn.role == "person"]
            if spoken or events:
                blocks += [Heading(section.title), *section_blocks(spoken, events)]
        if blocks:
            console.print(report_text(blocks))

    def full_transcript(self) -> RenderableType:
        """Whole transcript of the debate so far.

        Raises:
            RecordError: the record cannot be read.
        """
        return report_text(debate_blocks(build_transcript(self._folder, self._case_id, under_way=True)))

    def _is_new_turn(self, turn: TurnView) -> bool:
        return not (turn.superseded or turn.role.startswith("judge")) and self._is_new(turn.path, turn.text)

    def _is_new_event(self, event: EventView) -> bool:
        return event.kind not in _HIDDEN_EVENTS and self._is_new(f"{event.kind} at {event.path}", str(event.data))

    def _is_new(self, where: str, what: str) -> bool:
        key = (where, what)
        is_new = key not in self._printed
        self._printed.add(key)
        return is_new


def _decision_line(turn: TurnView) -> str:
    data = turn.data or {}
    who = "you" if turn.model == "person" else turn.model
    return f"{who} decided: {data.get('action', 'unknown')}{f': {text}' if (text := data.get('text')) else ''}"
