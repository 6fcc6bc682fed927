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


def _field(name: str, kind: pa.DataType, *, volatile: bool = False) -> pa.Field:
    return pa.field(name, kind, metadata=_VOLATILE if volatile else None)


_KEY = [
    _field("case_id", pa.string()),
    _field("attempt", pa.int16()),
]

CASES = pa.schema(
    [
        _field("case_id", pa.string()),
        _field("index", pa.int64()),
        _field("content_hash", pa.string()),
        _field("question", pa.string()),
        _field("labels", pa.list_(pa.string())),
        _field("choices", pa.list_(pa.string())),
        _field("passage", pa.string()),
        _field("title", pa.string()),
        _field("aliases", pa.list_(pa.list_(pa.string()))),
        _field("documents", pa.list_(pa.string())),
        _field("gold", pa.string()),
        _field("invalid", pa.string()),
        _field("domain", pa.string()),
        _field("criterion", pa.string()),
        _field("scoring", pa.string()),
        _field("accepted", pa.list_(pa.string())),
        _field("ratings", pa.list_(pa.float64())),
        _field("group", pa.string()),
        _field("part", pa.string()),
        _field("judged", pa.string()),
        _field("tags", pa.string()),
    ]
)

_REPLY = [
    *_KEY,
    _field("path", pa.string()),
    _field("role", pa.string()),
    _field("model", pa.string()),
    _field("template", pa.string()),
    _field("template_hash", pa.string()),
    _field("fingerprint", pa.string()),
    _field("sample", pa.int32()),
    _field("temperature", pa.float64()),
    _field("top_p", pa.float64()),
    _field("max_tokens", pa.int32()),
    _field("messages", pa.string()),
    _field("image_hashes", pa.list_(pa.string())),
    _field("text", pa.string()),
    _field("data", pa.string()),
    _field("answer", pa.string()),
    _field("p_normalised", pa.float64()),
    _field("p_printed", pa.float64()),
    _field("p_raw", pa.float64()),
    _field("p_bound_shift", pa.float64()),
    _field("p_reason", pa.string()),
    _field("logprob_stage", pa.string()),
    _field("held", pa.bool_()),
    _field("outcome", pa.string()),
    _field("failure", pa.string()),
    _field("error", pa.string()),
    _field("finish_reason", pa.string()),
    _field("prompt_tokens", pa.int32()),
    _field("completion_tokens", pa.int32()),
    _field("completion_tokens_estimate", pa.int32()),
    _field("prompt_tokens_stated", pa.int32()),
    _field("completion_tokens_stated", pa.int32()),
    _field("reasoning_tokens", pa.int32()),
    _field("reasoning", pa.string()),
    _field("reading", pa.string()),
    _field("reply_id", pa.string(), volatile=True),
    _field("supersedes", pa.string(), volatile=True),
    _field("reused_from", pa.string(), volatile=True),
    _field("latency_s", pa.float64(), volatile=True),
    _field("waited_s", pa.float64(), volatile=True),
    _field("http_attempts", pa.int16(), volatile=True),
    _field("unconfirmed_attempts", pa.int16(), volatile=True),
    _field("unconfirmed_tokens_max", pa.int64(), volatile=True),
    _field("at", pa.float64(), volatile=True),
    _field("process_id", pa.int32(), volatile=True),
]

_TOKEN_COLUMNS = [
    _field("token", pa.list_(pa.string())),
    _field("logprob", pa.list_(pa.float32())),
    _field("alternatives", pa.int16()),
    _field("alt_token", pa.list_(pa.string())),
    _field("alt_logprob", pa.list_(pa.float32())),
]

TOKEN_COLUMNS = [column.name for column in _TOKEN_COLUMNS]
"""Names of the columns that hold a reply's log-probabilities."""

REPLIES = pa.schema(_REPLY + _TOKEN_COLUMNS)
"""The journal's row for one paid reply; the tables `turns`, `tokens` and `judgments` are cut from it."""

TURNS = pa.schema(_REPLY)
TOKENS = pa.schema(
    [*_KEY, _field("path", pa.string()), _field("reply_id", pa.string(), volatile=True), *_TOKEN_COLUMNS]
)
JUDGMENTS = pa.schema(
    [
        *_KEY,
        _field("path", pa.string()),
        _field("judge", pa.string()),
        _field("model", pa.string()),
        _field("support", pa.string()),
        _field("score", pa.float64()),
        _field("rationale", pa.string()),
        _field("failure", pa.string()),
        _field("reply_id", pa.string(), volatile=True),
    ]
)

EVENTS = pa.schema(
    [
        *_KEY,
        _field("kind", pa.string()),
        _field("path", pa.string()),
        _field("data", pa.string()),
        _field("at", pa.float64(), volatile=True),
    ]
)

VERDICTS = pa.schema(
    [
        *_KEY,
        _field("answer", pa.string()),
        _field("how", pa.string()),
        _field("confidence", pa.float64()),
        _field("distribution", pa.string()),
        _field("rounds", pa.int16()),
        _field("flags", pa.list_(pa.string())),
        _field("payload", pa.string()),
        _field("failed", pa.bool_()),
        _field("failure", pa.string()),
        _field("error", pa.string()),
        _field("gold", pa.string()),
        _field("correct", pa.bool_()),
        _field("calls", pa.int32()),
        _field("prompt_tokens", pa.int64()),
        _field("completion_tokens", pa.int64()),
        _field("calls_without_usage", pa.int32()),
        _field("wall_s", pa.float64(), volatile=True),
        _field("at", pa.float64(), volatile=True),
    ]
)

EMBEDDINGS = pa.schema(
    [
        *_KEY,
        _field("encoder", pa.string()),
        _field("text_hash", pa.string()),
        _field("vector", pa.list_(pa.float32())),
    ]
)

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
