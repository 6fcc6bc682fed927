"""Debates on a page: each with its replies, what changed, what judges gave, what was sent and its tokens; and the
debates that a report's page has."""

from __future__ import annotations

import gzip
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import msgspec
import numpy as np

from moot.actors.record.rows import sorted_json
from moot.deploy.results.case_table import CaseColumn
from moot.deploy.results.figures.round_trace import trace_blocks
from moot.deploy.results.protocol_parts import Position, document_of, read_event
from moot.deploy.results.record import RunRecord
from moot.deploy.results.recorded_data import EventView, Section, Transcript, TurnView, cost_words
from moot.deploy.results.report.blocks import MOST_SHOWN, Items, Note, beginning
from moot.deploy.results.report.render import banner, blocks_data
from moot.deploy.results.text import natural_sort_key, number, shell_path
from moot.deploy.results.transcript import DebateTables, Row, build_transcripts
from moot.deploy.results.transcript_blocks import (
    case_pairs,
    event_blocks,
    turn_body,
    turn_facts,
    turn_marks,
    verdict_pairs,
)
from moot.protocols.messages import family_of

PROBABILITY_ONE = 1_000
"""Token probabilities are whole numbers, in parts of this: more digits would take most of a page's space."""


class SentReplies:
    """Requests and tokens of some debates.

    Args:
        tables: their rows, with requests.
        case_ids: of the debates.
    """

    def __init__(self, tables: DebateTables, case_ids: Sequence[str]) -> None:
        self._requests, self._tokens = (tables.rows(table, case_ids) for table in ("turns", "tokens"))

    def of_debate(self, case_id: str, attempt: int) -> DebateReplies:
        """Replies of one attempt at a case."""
        return DebateReplies(*(_by_path(rows.get(case_id, ()), attempt) for rows in (self._requests, self._tokens)))


class DebateReplies:
    """Requests and tokens of one debate, by path."""

    def __init__(self, requests: Mapping[str, Row], tokens: Mapping[str, Row]) -> None:
        self._requests, self._tokens = requests, tokens

    def request(self, turn: TurnView, place: Callable[[str], int]) -> dict[str, Any]:
        """Request of a reply: its messages exactly as sent, or why they are unknown.

        Args:
            turn: the reply.
            place: gives a text's place among the texts of the page.
        """
        row = self._requests.get(turn.path)
        if row is None or row["messages"] is None:
            return {"why": "The record has no messages for this reply."}
        sent = msgspec.json.decode(row["messages"])
        messages = sent.items() if isinstance(sent, dict) else sent  # a person was shown a form
        return {
            "messages": [
                (name, place(text if isinstance(text, str) else sorted_json(text))) for name, text in messages
            ],
            "pictures": row["image_hashes"] or [],
            "settings": [
                ("template", f"{row['template']} ({row['template_hash']})" if row["template"] else "none"),
                ("temperature", _as_asked(row["temperature"])),
                ("top-p", _as_asked(row["top_p"])),
                ("tokens at most", _as_asked(row["max_tokens"])),
                ("fingerprint", row["fingerprint"] or "unknown"),
            ],
        }

    def tokens(self, turn: TurnView) -> dict[str, Any] | None:
        """The tokens of a reply with their probabilities and alternatives; None where the record has none."""
        row = None if turn.superseded else self._tokens.get(turn.path)
        if row is None or not row["token"]:
            return None
        request = self._requests.get(turn.path)
        data: dict[str, Any] = {
            "token": row["token"],
            "p": _parts(row["logprob"] or ()),
            "stage": (request and request["logprob_stage"]) or "unknown",
        }
        if row["alternatives"] and row["alt_token"]:
            data |= _others(row["token"], row["alternatives"], row["alt_token"], row["alt_logprob"] or ())
        return data


def _by_path(rows: Sequence[Row], attempt: int) -> dict[str, Row]:
    """Rows of an attempt by path; the first row of a path is kept."""
    return {row["path"]: row for row in reversed(rows) if row["attempt"] == attempt}


def _others(
    tokens: Sequence[str], k: int, listed: Sequence[str | None], logprobs: Sequence[float | None]
) -> dict[str, Any]:
    """Alternatives to each token, without the token itself, most likely first."""
    parts = _parts(logprobs)
    others, shares = [], []
    for place, token in enumerate(tokens):
        here = slice(k * place, k * (place + 1))
        texts, q = list(listed[here]), parts[here]
        if token in texts:
            chosen = texts.index(token)
            del texts[chosen], q[chosen]
        while q and q[-1] is None:  # fewer came than were asked for
            texts.pop()
            q.pop()
        others.append(texts)
        shares.append(q)
    return {"other": others, "q": shares}


def _parts(logprobs: Sequence[float | None]) -> list[int | None]:
    """Probabilities in parts of `PROBABILITY_ONE`; None for one that is not known."""
    values = np.array(logprobs, float)
    unknown = np.isnan(values)
    shares = np.exp(np.minimum(np.where(unknown, 0.0, values), 0.0))
    parts: list[int | None] = np.rint(PROBABILITY_ONE * shares).astype(int).tolist()
    for place in np.flatnonzero(unknown):
        parts[place] = None
    return parts


def _as_asked(value: float | None) -> str:
    return "the server's default" if value is None else number(value)


_OF_JUDGES = ("crit/", "assessment/")
"""Beginnings of the paths under which judges read a reply; the reply's path follows."""

_SILENT = ("failed", "invalid", "cut")
"""Outcomes of replies without an answer."""

_FEW_LINES = 3
"""Most entries of a stage without replies that are shown unfolded, if each has only a title."""


def debate_page(debate: Transcript, sent: SentReplies) -> dict[str, Any]:
    """A debate as JSON values: what the page writes, in the order in which it is read."""
    replies = [turn for section in debate.sections for turn in section.turns]
    page, document = _Page(debate, sent), document_of(debate)
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
        "document": [] if document is None else blocks_data(document.report_blocks()),
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
        scores = [known.score(data) for known, data in filter(None, map(read_event, noted)) if known.score is not None]
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
    """Position of an agent: that of an event about its reply, else its answer."""
    for known, data in filter(None, map(read_event, noted)):
        if known.position is not None:
            return known.position(data)
    return Position(turn.answer, turn.confidence)


TRANSCRIPT_BYTES = 5_000_000
"""Most bytes of the transcripts in one page."""

_STRETCHES, _NEIGHBOURS = 8, 400
_FAILED = 40
"""Transcripts of a large run: number of stretches, cases of each, and failed cases from elsewhere."""

_LEVEL = 6
"""Level of the compression: the highest takes three times as long, and saves a hundredth."""

_FIRST = 100
"""Transcripts packed first; their size determines how many more fit."""


def transcripts_data(run: RunRecord, columns: Sequence[CaseColumn], size: int = TRANSCRIPT_BYTES) -> dict[str, Any]:
    """Transcripts by case as JSON values, as many as fit into `size` bytes, and the command that shows all."""
    values = {column.name: column.values for column in columns}
    wanted = sample_order([str(case_id) for case_id in values["case"]], [str(each) for each in values["outcome"]])
    tables = DebateTables(run.folder, wanted, with_requests=True)
    packed = _packed(tables, wanted[:_FIRST])
    used = sum(map(len, packed.values()))
    if used and len(wanted) > _FIRST:
        packed |= _packed(tables, wanted[_FIRST : int(len(packed) * size / used)])
    kept = dict(_fitting(packed, size))
    return {"run": run.info.name, "packed": kept, "command": f"moot view {shell_path(run.info.name)}"}


def several_transcripts(runs: Sequence[RunRecord], columns: Sequence[CaseColumn]) -> dict[str, Any]:
    """Transcripts of the same cases in several runs, those of the others under `others`; they share the room."""
    first, *others = (transcripts_data(run, columns, TRANSCRIPT_BYTES // len(runs)) for run in runs)
    return {**first, "others": others}


def sample_order(case_ids: Sequence[str], outcomes: Sequence[str]) -> list[str]:
    """Cases of a sample, failed and wrong ones ahead: of four, one failed and two wrong, as long as there are any.

    A sample of many cases is of some stretches of neighbours, which the record has close together, and of some more
    failed ones. Within each kind the order is that of a checksum of the id: the same in every report.
    """
    kinds: dict[str, list[str]] = {"failed": [], "wrong": [], "other": []}
    stretch = max(1, len(case_ids) // _STRETCHES)
    elsewhere = []
    for place, (case_id, how) in enumerate(zip(case_ids, outcomes, strict=True)):
        if place % stretch < _NEIGHBOURS:
            kinds[how if how in kinds else "other"].append(case_id)
        elif how == "failed":
            elsewhere.append(case_id)
    failed, wrong, other = (sorted(kind, key=_checksum) for kind in kinds.values())
    failed += sorted(elsewhere, key=_checksum)[: max(0, _FAILED - len(failed))]
    turns = zip_longest(failed, wrong[::2], wrong[1::2], other)
    return [case_id for case_id in chain.from_iterable(turns) if case_id is not None]


def _checksum(case_id: str) -> tuple[int, str]:
    return zlib.crc32(case_id.encode()), case_id


def _packed(tables: DebateTables, case_ids: Sequence[str]) -> dict[str, str]:
    """Transcripts of some of the tables' cases, compressed: many texts in them occur several times."""
    sent = SentReplies(tables, case_ids)
    return {debate.case_id: pack(debate_page(debate, sent)) for debate in build_transcripts(tables, case_ids)}


def pack(value: Any) -> str:
    """JSON as gzip in base64, which a page's script unpacks."""
    return b64encode(gzip.compress(msgspec.json.encode(value), _LEVEL, mtime=0)).decode()


def _fitting(packed: dict[str, str], size: int) -> Iterator[tuple[str, str]]:
    for case_id, text in packed.items():
        size -= len(text)
        if size >= 0:
            yield case_id, text
