"""Data of a debate's page: the transcript as text, stage by stage, each reply with its notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from moot.deploy.results.document.blocks import document_blocks
from moot.deploy.results.document.read import build_document
from moot.deploy.results.report.block_data import blocks_data
from moot.deploy.results.report.blocks import Items, Note
from moot.deploy.results.report.long_texts import MOST_SHOWN, beginning
from moot.deploy.results.report.render import banner
from moot.deploy.results.rounds.round_trace import trace_blocks
from moot.deploy.results.run_report.sent_replies import SentReplies
from moot.deploy.results.text import natural_sort_key, number
from moot.deploy.results.transcripts.blocks import (
    case_pairs,
    cost_words,
    event_blocks,
    turn_body,
    turn_facts,
    turn_marks,
    verdict_pairs,
)
from moot.deploy.results.transcripts.views import EventView, Section, Transcript, TurnView
from moot.protocols.ceda.events import StanceTaken
from moot.protocols.crit.events import CritJudged
from moot.protocols.crit.scoring import out_of_ten
from moot.protocols.evince.events import DistributionStated
from moot.protocols.messages import family_of
from moot.protocols.rubrics.events import ReplyAssessed

_OF_JUDGES = ("crit/", "assessment/")
"""Beginnings of the paths under which judges read a reply; the reply's path follows."""

_SILENT = ("failed", "invalid", "cut")
"""Outcomes of replies without an answer."""

_FEW_LINES = 3
"""Most entries of a stage without replies that are shown unfolded, if each has only a title."""


class Position(NamedTuple):
    """Position of an agent after a reply: an answer, and its confidence; None is unknown."""

    answer: str | None
    confidence: float | None


def debate_page(debate: Transcript, sent: SentReplies) -> dict[str, Any]:
    """A debate as JSON values: what the page writes, in the order in which it is read."""
    replies = [turn for section in debate.sections for turn in section.turns]
    page, document = _Page(debate, sent), build_document(debate)
    return {
        "case": debate.case_id,
        "run": debate.run,
        "banner": blocks_data(banner(debate.simulated)),
        "question": beginning(debate.question),
        "gold": debate.gold,
        "answer": debate.verdict and debate.verdict.answer,
        "correct": debate.verdict and debate.verdict.correct,
        "state": debate.state,
        "about": _beginnings(pair for pair in case_pairs(debate) if pair[0] != "question"),
        "verdict": _beginnings([*_verdict(debate, document is None), ("cost", cost_words(debate.cost))]),
        "document": [] if document is None else blocks_data(document_blocks(document)),
        "columns": debate_roles(replies, debate.sections),
        "stages": [stage for section in debate.sections if (stage := page.stage(section))],
        "trace": [] if debate.trace is None else blocks_data(trace_blocks(debate.trace)),
        "texts": page.texts.values,
    }


def _beginnings(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, beginning(value)) for name, value in pairs]


def _verdict(debate: Transcript, whole: bool) -> list[tuple[str, str]]:
    """The verdict; without its payload beside a document, which contains it."""
    verdict = debate.verdict
    if verdict is not None and not whole:
        verdict = verdict.model_copy(update={"payload": {}})
    return verdict_pairs(verdict, debate.state)


def debate_roles(turns: Iterable[TurnView], sections: Iterable[Section]) -> list[str]:
    """Roles of the family that replies in the most stages, of equal ones the first, without judges and persons; empty
    for a single role."""
    stages = Counter(
        family
        for section in sections
        for family in dict.fromkeys(family_of(turn.role) for turn in section.turns)
        if family not in ("judge", "person")
    )
    if not stages:
        return []
    family = stages.most_common(1)[0][0]
    roles = sorted({turn.role for turn in turns if family_of(turn.role) == family}, key=natural_sort_key)
    return roles if len(roles) > 1 else []


def changes(before: Position | None, now: Position) -> list[tuple[str, str]]:
    """Changes since an agent's previous reply: a sign and a text for each.

    >>> changes(Position("Yes", 0.7), Position("No", 0.9))
    [('≠', 'answer changed: Yes to No')]
    >>> changes(Position("No", 0.9), Position("No", 0.6))
    [('▼', 'less sure: 0.9 to 0.6')]
    >>> changes(Position("No", 0.9), Position("No", 0.9))
    [('=', 'same answer, as sure')]
    """
    if before is None or before.answer is None or now.answer is None:
        return []
    if before.answer != now.answer:  # the two confidences are in different answers, and cannot be compared
        return [("≠", f"answer changed: {before.answer} to {now.answer}")]
    if before.confidence is not None and now.confidence is not None and before.confidence != now.confidence:
        sign, word = ("▲", "surer") if now.confidence > before.confidence else ("▼", "less sure")
        return [(sign, f"{word}: {number(before.confidence)} to {number(now.confidence)}")]
    return [("=", "same answer, as sure" if now.confidence is not None else "same answer")]


class _Texts:
    """Texts that occur several times, by place; each is kept once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        return self._places.setdefault(beginning(text), len(self._places))

    @property
    def values(self) -> list[str]:
        return list(self._places)


class _Page:
    """Stages of one debate, each reply beside its judgments."""

    def __init__(self, debate: Transcript, sent: SentReplies) -> None:
        self.texts = _Texts()
        self._sent = sent.of_debate(debate.case_id, debate.attempt)
        self._before: dict[str, Position] = {}
        events = [event for section in debate.sections for event in section.events]
        turns = [turn for section in debate.sections for turn in section.turns]
        paths = {turn.path for turn in turns}
        self._noted: dict[str, list[EventView]] = {}
        self._readings: dict[str, list[TurnView]] = {}
        for event in events:
            if (of := _reply_of(event.path, paths)) is not None:
                self._noted.setdefault(of, []).append(event)
        for turn in turns:
            if turn.path.startswith(_OF_JUDGES) and (of := _reply_of(turn.path, paths - {turn.path})) is not None:
                self._readings.setdefault(of, []).append(turn)
        self._placed_turns = {turn.path for turns in self._readings.values() for turn in turns}
        self._placed_events = {(event.kind, event.path) for events in self._noted.values() for event in events}

    def stage(self, section: Section) -> dict[str, Any] | None:
        """Stage; None if all its replies and notes are shown beside other replies."""
        turns = [self._turn(turn) for turn in section.turns if turn.path not in self._placed_turns]
        events = [event for event in section.events if (event.kind, event.path) not in self._placed_events]
        blocks = [block for event in events for block in event_blocks(event)]
        lines = [block.text for block in blocks if isinstance(block, Note)]
        if not turns and len(lines) == len(blocks) > _FEW_LINES:
            items = blocks_data([Items(lines)])
            return {"title": section.title, "turns": [], "notes": items, "folded": f"{len(lines)} entries"}
        notes = blocks_data(blocks)
        return {"title": section.title, "turns": turns, "notes": notes} if turns or notes else None

    def _turn(self, turn: TurnView) -> dict[str, Any]:
        noted = self._noted.get(turn.path, [])
        body = turn_body(turn)
        tokens = self._sent.tokens(turn) if len(turn.text) <= MOST_SHOWN else None
        data: dict[str, Any] = {
            "path": turn.path,
            "role": turn.role,
            "facts": turn_facts(turn),
            "marks": turn_marks(turn),
            "failed": turn.outcome in ("failed", "invalid"),
            "body": beginning(body),
            "changes": self._changes(turn, noted),
            "sent": self._sent.request(turn, self.texts.place),
        }
        if tokens is not None:
            data["tokens"] = tokens
        elif turn.text and turn.text != body:
            data["written"] = beginning(turn.text)
        scores = [score for event in noted for score in _scores(event)]
        own = [event for event in noted if not event.path.startswith(_OF_JUDGES)]
        judged = [event for event in noted if event.path.startswith(_OF_JUDGES)]
        data["notes"] = blocks_data(block for event in own for block in event_blocks(event))
        if judged or turn.path in self._readings:
            data["judging"] = {
                "scores": scores,
                "notes": blocks_data(block for event in judged for block in event_blocks(event)),
                "turns": [self._turn(reading) for reading in self._readings.get(turn.path, [])],
            }
        return data

    def _changes(self, turn: TurnView, noted: Sequence[EventView]) -> list[tuple[str, str]]:
        if turn.outcome in _SILENT or turn.superseded or family_of(turn.role) == "judge":
            return []
        now = _position(turn, noted)
        before = self._before.get(turn.role)
        if now.answer is not None:
            self._before[turn.role] = now
        return changes(before, now)


def _reply_of(path: str, replies: set[str]) -> str | None:
    """The reply that an event or a judge's reply is about, by its path; None for one about a whole stage."""
    for prefix in _OF_JUDGES:
        path = path.removeprefix(prefix)
    while path not in replies and "/" in path:
        path = path.rpartition("/")[0]
    return path if path in replies else None


def _position(turn: TurnView, noted: Iterable[EventView]) -> Position:
    """Position of an agent: its answer, or the one of its distribution or stance."""
    for event in noted:
        if event.kind == DistributionStated.kind and (stated := DistributionStated.read(event.data)) is not None:
            known = [(share, label) for label, share in stated.cleaned.items() if share is not None]
            return Position(*max(known)[::-1]) if known else Position(None, None)
        if event.kind == StanceTaken.kind and (taken := StanceTaken.read(event.data)) is not None:
            return Position(taken.stance, None)
    return Position(turn.answer, turn.confidence)


def _scores(event: EventView) -> Iterable[str]:
    """Judgments of a reply, as a short text."""
    if event.kind == CritJudged.kind and (crit := CritJudged.read(event.data)) is not None:
        yield f"CRIT {out_of_ten(crit.score)}"
    if event.kind == ReplyAssessed.kind and (panel := ReplyAssessed.read(event.data)) is not None:
        yield f"Q {number(panel.quality, 2)}" + (", flagged" if panel.flag else "")
