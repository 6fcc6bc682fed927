"""What a writer must know of a debate that it had put out of its mind, when its case comes again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

import msgspec

from moot.actors.record.as_written import Snapshot
from moot.actors.record.part_index import PartIndex
from moot.actors.record.schema import CaseKey
from moot.actors.record.signal_keeper import SPEAKER_COLUMNS, OpenDebate, Spoken, speaker, without_marks
from moot.protocols.rubrics.assessed import ASSESSMENT, read_assessment

REOPENING_STREAMS = ("replies", "events")
"""The streams that `reopened` wants of a snapshot."""

_KEY = ["case_id", "attempt", "path"]


@dataclass
class Reopened:
    """What is recorded of a debate without a verdict.

    Attributes:
        reply_ids: of the replies that stand, by path.
        events: digest of what was noted last, by kind and path.
        signals: what signals would be made of.
    """

    reply_ids: dict[str, str] = field(default_factory=dict)
    events: dict[tuple[str, str], int] = field(default_factory=dict)
    signals: OpenDebate = field(default_factory=OpenDebate)


def reopened(recorded: Snapshot, keys: Sequence[CaseKey], index: PartIndex) -> dict[CaseKey, Reopened]:
    """What is recorded of each of these debates."""
    found = {key: Reopened() for key in keys}
    _read_replies(found, recorded, index)
    _read_tokens(found, recorded, index)
    _read_events(found, recorded, index)
    return found


def _read_replies(found: dict[CaseKey, Reopened], recorded: Snapshot, index: PartIndex) -> None:
    columns = [*_KEY, "reply_id", "supersedes", *SPEAKER_COLUMNS]
    for batch in recorded.rows("turns", "replies", columns, index):
        for row in batch.to_pylist():
            debate = found.get((row["case_id"], row["attempt"]))
            if debate is not None and debate.reply_ids.get(row["path"]) in (None, row["supersedes"]):
                debate.reply_ids[row["path"]] = row["reply_id"]
                debate.signals.replies[row["path"]] = Spoken(None, *speaker(*(row[name] for name in SPEAKER_COLUMNS)))


def _read_tokens(found: dict[CaseKey, Reopened], recorded: Snapshot, index: PartIndex) -> None:
    for batch in recorded.rows("tokens", "replies", [*_KEY, "reply_id", "logprob"], index):
        rows = batch.select([*_KEY, "reply_id"]).to_pylist()
        for row, logprobs in zip(rows, batch["logprob"], strict=True):
            debate = found.get((row["case_id"], row["attempt"]))
            if debate is not None and logprobs.is_valid and debate.reply_ids.get(row["path"]) == row["reply_id"]:
                said = debate.signals.replies[row["path"]]
                tokens = logprobs.values.to_numpy(zero_copy_only=False).copy()
                debate.signals.replies[row["path"]] = said._replace(logprobs=tokens)


def _read_events(found: dict[CaseKey, Reopened], recorded: Snapshot, index: PartIndex) -> None:
    columns = ["case_id", "attempt", "kind", "path", "data", "at"]
    rows = [row for batch in recorded.rows("events", "events", columns, index) for row in batch.to_pylist()]
    for row in sorted(rows, key=lambda each: each["at"]):
        debate = found.get((row["case_id"], row["attempt"]))
        if debate is None:
            continue
        debate.events[row["kind"], row["path"]] = crc32(row["data"].encode())
        if row["kind"] == ASSESSMENT and (assessment := read_assessment(msgspec.json.decode(row["data"]))) is not None:
            debate.signals.assessments[assessment.reply] = without_marks(assessment)
