"""The record's columns: names, types and which of them are volatile.

A *volatile* column (times, latencies, ids of processes and of paid replies) may differ between two runs of the same
seed; every other column is equal after sorting by key, whatever the engine and placement. Column names are stable:
other tools read them. `SCHEMA_VERSION` changes when one is renamed, removed or changes its meaning.
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 1

CaseKey = tuple[str, int]
"""A debate: (case id, attempt)."""

_VOLATILE = {"volatile": "1"}


def _columns(kind: pa.DataType, *names: str, volatile: bool = False) -> list[pa.Field]:
    return [pa.field(name, kind, metadata=_VOLATILE if volatile else None) for name in names]


_TEXT, _TEXTS, _FLAG = pa.string(), pa.list_(pa.string()), pa.bool_()
_INT16, _INT32, _INT64, _FLOAT = pa.int16(), pa.int32(), pa.int64(), pa.float64()
_REPLY_ID = _columns(_TEXT, "reply_id", volatile=True)
_KEY = [*_columns(_TEXT, "case_id"), *_columns(_INT16, "attempt")]

CASES = pa.schema(
    [
        *_columns(_TEXT, "case_id"),
        *_columns(_INT64, "index"),
        *_columns(_TEXT, "content_hash", "question"),
        *_columns(_TEXTS, "labels", "choices"),
        *_columns(_TEXT, "passage", "title"),
        *_columns(pa.list_(_TEXTS), "aliases"),
        *_columns(_TEXTS, "documents"),
        *_columns(_TEXT, "gold", "invalid", "domain", "criterion", "scoring"),
        *_columns(_TEXTS, "accepted"),
        *_columns(pa.list_(_FLOAT), "ratings"),
        *_columns(_TEXT, "group", "part", "judged", "tags"),
    ]
)

_REPLY = [
    *_KEY,
    *_columns(_TEXT, "path", "role", "model", "template", "template_hash", "fingerprint"),
    *_columns(_INT32, "sample"),
    *_columns(_FLOAT, "temperature", "top_p"),
    *_columns(_INT32, "max_tokens"),
    *_columns(_TEXT, "messages"),
    *_columns(_TEXTS, "image_hashes"),
    *_columns(_TEXT, "text", "data", "answer"),
    *_columns(_FLOAT, "p_normalised", "p_printed", "p_raw", "p_bound_shift"),
    *_columns(_TEXT, "p_reason", "logprob_stage"),
    *_columns(_FLAG, "held"),
    *_columns(_TEXT, "outcome", "failure", "error", "finish_reason"),
    *_columns(_INT32, "prompt_tokens", "completion_tokens", "completion_tokens_estimate"),
    *_columns(_INT32, "prompt_tokens_stated", "completion_tokens_stated", "reasoning_tokens"),
    *_columns(_TEXT, "reasoning", "reading"),
    *_REPLY_ID,
    *_columns(_TEXT, "supersedes", "reused_from", volatile=True),
    *_columns(_FLOAT, "latency_s", "waited_s", volatile=True),
    *_columns(_INT16, "http_attempts", "unconfirmed_attempts", volatile=True),
    *_columns(_INT64, "unconfirmed_tokens_max", volatile=True),
    *_columns(_FLOAT, "at", volatile=True),
    *_columns(_INT32, "process_id", volatile=True),
]

_TOKEN_COLUMNS = [
    *_columns(_TEXTS, "token"),
    *_columns(pa.list_(pa.float32()), "logprob"),
    *_columns(_INT16, "alternatives"),
    *_columns(_TEXTS, "alt_token"),
    *_columns(pa.list_(pa.float32()), "alt_logprob"),
]

TOKEN_COLUMNS = [column.name for column in _TOKEN_COLUMNS]
"""Names of the columns that hold a reply's log-probabilities."""

REPLIES = pa.schema(_REPLY + _TOKEN_COLUMNS)
"""The journal's row for one paid reply; the tables `turns`, `tokens` and `judgments` are cut from it."""

TURNS = pa.schema(_REPLY)
TOKENS = pa.schema([*_KEY, *_columns(_TEXT, "path"), *_REPLY_ID, *_TOKEN_COLUMNS])
JUDGMENTS = pa.schema(
    [
        *_KEY,
        *_columns(_TEXT, "path", "judge", "model", "support"),
        *_columns(_FLOAT, "score"),
        *_columns(_TEXT, "rationale", "failure"),
        *_REPLY_ID,
    ]
)
EVENTS = pa.schema([*_KEY, *_columns(_TEXT, "kind", "path", "data"), *_columns(_FLOAT, "at", volatile=True)])
VERDICTS = pa.schema(
    [
        *_KEY,
        *_columns(_TEXT, "answer", "how"),
        *_columns(_FLOAT, "confidence"),
        *_columns(_TEXT, "distribution"),
        *_columns(_INT16, "rounds"),
        *_columns(_TEXTS, "flags"),
        *_columns(_TEXT, "payload"),
        *_columns(_FLAG, "failed"),
        *_columns(_TEXT, "failure", "error", "gold"),
        *_columns(_FLAG, "correct"),
        *_columns(_INT32, "calls"),
        *_columns(_INT64, "prompt_tokens", "completion_tokens"),
        *_columns(_INT32, "calls_without_usage"),
        *_columns(_FLOAT, "wall_s", "at", volatile=True),
    ]
)
EMBEDDINGS = pa.schema([*_KEY, *_columns(_TEXT, "encoder", "text_hash"), *_columns(pa.list_(pa.float32()), "vector")])

JOURNAL: dict[str, pa.Schema] = {
    "cases": CASES,
    "embeddings": EMBEDDINGS,
    "replies": REPLIES,
    "events": EVENTS,
    "verdicts": VERDICTS,
}
"""Streams of the journal in the order they are flushed: a verdict is durable only after its replies are."""

TABLES: dict[str, pa.Schema] = {
    "cases": CASES,
    "turns": TURNS,
    "tokens": TOKENS,
    "judgments": JUDGMENTS,
    "events": EVENTS,
    "verdicts": VERDICTS,
    "embeddings": EMBEDDINGS,
}
"""The tables of a finished run."""

KEYS: dict[str, tuple[str, ...]] = {
    "cases": ("case_id",),
    "turns": ("case_id", "attempt", "path"),
    "tokens": ("case_id", "attempt", "path"),
    "judgments": ("case_id", "attempt", "path"),
    "events": ("case_id", "attempt", "kind", "path"),
    "verdicts": ("case_id", "attempt"),
    "embeddings": ("case_id", "attempt", "encoder", "text_hash"),
}
"""What identifies a row; the first row of a key wins, unless a later one supersedes it; of events the last."""

ASKED, ABANDONED = "asked", "abandoned"
"""Kinds of event: an ask is about to be paid for; it ended without a reply on record, and what it may have cost."""

DUPLICATE = "duplicate"
"""Why a reply's row was abandoned that came for a path with a reply: its ask has one."""

BOOKKEEPING_EVENTS = frozenset({ASKED, ABANDONED})
"""Events that may occur several times for one key: each is one attempt to pay, or the end of one."""


def completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with all columns of `schema`: those that came after it was written are null."""
    if len(batch.schema) == len(schema):
        return batch
    known = set(batch.schema.names)
    columns = [
        batch.column(field.name) if field.name in known else pa.nulls(batch.num_rows, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def stable_columns(table: str) -> list[str]:
    """The columns of `table` that two runs of the same seed share."""
    return [field.name for field in TABLES[table] if not (field.metadata or {}).get(b"volatile")]
