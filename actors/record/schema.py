"""The record's columns: names, types, meanings and which of them are volatile.

A *volatile* column (times, latencies, ids of processes and of paid replies) may differ between two runs of the same
seed; every other column is equal after sorting by key, whatever the engine and placement. Column names are stable:
other tools read them. `SCHEMA_VERSION` changes when one is renamed, removed or changes its meaning. The reference page
of columns is generated from this module.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

SCHEMA_VERSION = 1

CaseKey = tuple[str, int]
"""Key of a debate: (case id, attempt)."""


class RecordColumn(NamedTuple):
    """Column of the record: name, type, meaning, and whether it is volatile."""

    name: str
    kind: pa.DataType
    meaning: str
    volatile: bool = False


def _schema(columns: list[RecordColumn]) -> pa.Schema:
    return pa.schema(
        [pa.field(each.name, each.kind, metadata={"volatile": "1"} if each.volatile else None) for each in columns]
    )


_TEXT, _TEXTS, _FLAG = pa.string(), pa.list_(pa.string()), pa.bool_()
_INT16, _INT32, _INT64, _FLOAT = pa.int16(), pa.int32(), pa.int64(), pa.float64()
_FLOATS = pa.list_(pa.float32())

_CASE_ID = RecordColumn("case_id", _TEXT, "the case")
_ATTEMPT = RecordColumn("attempt", _INT16, "0, and one more for each `--retry-failed`")
_KEY = [_CASE_ID, _ATTEMPT]
_PATH = RecordColumn("path", _TEXT, "the step in the debate, named by the protocol")
_OF_A_REPLY = RecordColumn("reply_id", _TEXT, "the reply in `turns`", volatile=True)
_AT = RecordColumn("at", _FLOAT, "Unix time", volatile=True)

_CASES = [
    RecordColumn("case_id", _TEXT, "the given id, or `TASK-INDEX`"),
    RecordColumn("index", _INT64, "place in the file, from 0"),
    RecordColumn("content_hash", _TEXT, "hash of everything but the id; compared on resume"),
    RecordColumn("question", _TEXT, "as in the file"),
    RecordColumn("labels", _TEXTS, "closed set of answers; null for free text"),
    RecordColumn("choices", _TEXTS, "for lettered labels, the text behind each"),
    RecordColumn("passage", _TEXT, "the evidence; may be empty"),
    RecordColumn("title", _TEXT, "heading of the passage; may be empty"),
    RecordColumn(
        "aliases", pa.list_(_TEXTS), "for each label its other spellings; null in records older than the column"
    ),
    RecordColumn("documents", _TEXTS, "what a protocol may retrieve from; null in records older than the column"),
    RecordColumn("gold", _TEXT, "right answer; null where the file has none"),
    RecordColumn("invalid", _TEXT, "why the row is not a valid case; empty for a valid one"),
    RecordColumn(
        "domain",
        _TEXT,
        "what kind of answer is asked for; null where the task does not say; this and the next five columns are null "
        "in records older than they are",
    ),
    RecordColumn(
        "criterion", _TEXT, "JSON: the trait that the passage is scored on, its scale and guide; null otherwise"
    ),
    RecordColumn(
        "scoring", _TEXT, "how an answer is compared with the right one: `label`, `number`, `short answer` or `score`"
    ),
    RecordColumn("accepted", _TEXTS, "all right answers, where `gold` is not the only one"),
    RecordColumn("ratings", pa.list_(_FLOAT), "human raters' scores, null for a missing one"),
    RecordColumn("group", _TEXT, "what several cases share, such as their essay; empty for a case that stands alone"),
    RecordColumn(
        "part",
        _TEXT,
        "the part of the task that the case belongs to, such as an essay set; figures of different parts are never "
        "pooled; empty for a task of one part",
    ),
    RecordColumn("judged", _TEXT, "JSON: the reply that is judged, with what it answers; null for a case to debate"),
    RecordColumn("tags", _TEXT, "JSON by name: what else the case is counted by, such as its category; null for none"),
]

_REPLY = [
    *_KEY,
    _PATH,
    RecordColumn("role", _TEXT, "who was asked: `agent/0`, `judge/0`, `person`"),
    RecordColumn("model", _TEXT, "name of its model as configured"),
    RecordColumn("template", _TEXT, "which prompt template"),
    RecordColumn("template_hash", _TEXT, "hash of the template's text"),
    RecordColumn(
        "fingerprint",
        _TEXT,
        "hash of everything that is sent and of how it is read: model, decoding, template, persona, slots, images",
    ),
    RecordColumn("sample", _INT32, "number of the sample among equal asks"),
    RecordColumn("temperature", _FLOAT, "as asked; null is the server's default"),
    RecordColumn("top_p", _FLOAT, "as asked; null is the server's default"),
    RecordColumn("max_tokens", _INT32, "as asked"),
    RecordColumn("messages", _TEXT, "JSON: the messages that were sent"),
    RecordColumn("image_hashes", _TEXTS, "hashes of the pictures that were sent"),
    RecordColumn("text", _TEXT, "the reply as received"),
    RecordColumn("data", _TEXT, "JSON: the parsed and validated reply; null if it failed"),
    RecordColumn("answer", _TEXT, "label, or normalised free text; null without one"),
    RecordColumn("p_normalised", _FLOAT, "probability of the answer among the labels; null is unknown"),
    RecordColumn("p_printed", _FLOAT, "the paper's sigma(l) = p/(1+p)"),
    RecordColumn("p_raw", _FLOAT, "the answer's probability at its own token"),
    RecordColumn("p_bound_shift", _FLOAT, "how far `p_normalised` could move for labels that are not listed"),
    RecordColumn("p_reason", _TEXT, "why `p_normalised` is null"),
    RecordColumn(
        "logprob_stage",
        _TEXT,
        "`before` or `after` temperature, `raw` or `masked` (before or after a schema's mask), or `unknown`",
    ),
    RecordColumn(
        "held",
        _FLAG,
        "whether decoding was constrained to a schema, or may have been (a replay of a record that does not say); null "
        "where there is no reply, and in records older than the column",
    ),
    RecordColumn(
        "outcome", _TEXT, "`ok`, `repaired`, `reasked`, `failed`, `invalid` (an unreadable first reply), `cut`"
    ),
    RecordColumn("failure", _TEXT, "kind of failure; empty for none"),
    RecordColumn("error", _TEXT, "its message"),
    RecordColumn("finish_reason", _TEXT, "as the server says; `cut` or `repetition` where moot stopped the stream"),
    RecordColumn("prompt_tokens", _INT32, "billed; null where the server does not say; see `prompt_tokens_stated`"),
    RecordColumn(
        "completion_tokens", _INT32, "billed; null where the server does not say; see `completion_tokens_stated`"
    ),
    RecordColumn(
        "completion_tokens_estimate", _INT32, "tokens received of a reply that was stopped early; null otherwise"
    ),
    RecordColumn(
        "prompt_tokens_stated",
        _INT32,
        "what the server said, if that or its other count is less than the texts surely have: the count that is too "
        "small is then an estimate; null otherwise; this and the next column are null in records older than they are",
    ),
    RecordColumn("completion_tokens_stated", _INT32, "the same for the reply"),
    RecordColumn(
        "reasoning_tokens",
        _INT32,
        "tokens of hidden reasoning, as the server says; null where it does not; this and the next two columns are "
        "null in records older than they are",
    ),
    RecordColumn("reasoning", _TEXT, "hidden reasoning, with `--save-reasoning`; null otherwise"),
    RecordColumn(
        "reading", _TEXT, "how the reply was parsed, if not as it stood: `prefix`, `reasoning`, or both; else null"
    ),
    RecordColumn("reply_id", _TEXT, "unique for each reply that was paid for", volatile=True),
    RecordColumn("supersedes", _TEXT, "the reply that this one replaces", volatile=True),
    RecordColumn(
        "reused_from",
        _TEXT,
        "the reused reply, as `RUN:CASE/ATTEMPT/PATH`; null for one that was paid for",
        volatile=True,
    ),
    RecordColumn(
        "latency_s",
        _FLOAT,
        "from the ask to its reply, with waiting, retries and an unreadable first reply",
        volatile=True,
    ),
    RecordColumn(
        "waited_s",
        _FLOAT,
        "the part of it spent waiting for rate limits or after a 429; null in records older than the column",
        volatile=True,
    ),
    RecordColumn("http_attempts", _INT16, "requests made, with retries", volatile=True),
    RecordColumn(
        "unconfirmed_attempts",
        _INT16,
        "attempts that may have been billed although the server did not say what they used",
        volatile=True,
    ),
    RecordColumn("unconfirmed_tokens_max", _INT64, "upper bound of the tokens in them", volatile=True),
    _AT,
    RecordColumn("process_id", _INT32, "of the process that asked", volatile=True),
]

_TOKENS = [
    RecordColumn("token", _TEXTS, "the T tokens of the reply"),
    RecordColumn("logprob", _FLOATS, "natural log of each token's probability"),
    RecordColumn("alternatives", _INT16, "K, how many alternatives per token are listed"),
    RecordColumn("alt_token", _TEXTS, "T x K, flattened"),
    RecordColumn("alt_logprob", _FLOATS, "T x K, flattened, NaN where fewer were received"),
]

_JUDGMENTS = [
    *_KEY,
    _PATH,
    RecordColumn("judge", _TEXT, "`judge/0`, ..."),
    RecordColumn("model", _TEXT, "its model"),
    RecordColumn("support", _TEXT, "`supported`, `contradicted`, `not covered`; null if missing"),
    RecordColumn("score", _FLOAT, "in [0, 1]; null if missing, never 0 for that"),
    RecordColumn("rationale", _TEXT, "one sentence"),
    RecordColumn("failure", _TEXT, "why it is missing; empty for none"),
    _OF_A_REPLY,
]

_EVENTS = [
    *_KEY,
    RecordColumn("kind", _TEXT, "kind of the event"),
    _PATH,
    RecordColumn("data", _TEXT, "JSON: the event's payload"),
    _AT,
]

_VERDICTS = [
    *_KEY,
    RecordColumn("answer", _TEXT, "the verdict; null without one"),
    RecordColumn("how", _TEXT, "how it was reached: `skipped`, `stable-agree`, ..., `failed`"),
    RecordColumn("confidence", _FLOAT, "in [0, 1]; null is unknown"),
    RecordColumn("distribution", _TEXT, "JSON: share per label"),
    RecordColumn("rounds", _INT16, "debate rounds after the openings"),
    RecordColumn("flags", _TEXTS, "marks that a reader should see"),
    RecordColumn("payload", _TEXT, "JSON: the protocol's own result"),
    RecordColumn("failed", _FLAG, "whether the case failed"),
    RecordColumn("failure", _TEXT, "kind of failure"),
    RecordColumn("error", _TEXT, "its message"),
    RecordColumn("gold", _TEXT, "right answer; null where there is none"),
    RecordColumn("correct", _FLAG, "null where it cannot be scored"),
    RecordColumn("calls", _INT32, "replies that the verdict rests on"),
    RecordColumn("prompt_tokens", _INT64, "of those replies"),
    RecordColumn("completion_tokens", _INT64, "of those replies"),
    RecordColumn("calls_without_usage", _INT32, "of them, those whose server did not say what it used"),
    RecordColumn("wall_s", _FLOAT, "from opening to verdict, in the session that ended the debate", volatile=True),
    _AT,
]

_EMBEDDINGS = [
    *_KEY,
    RecordColumn("encoder", _TEXT, "which encoder"),
    RecordColumn("text_hash", _TEXT, "hash of the text"),
    RecordColumn("vector", _FLOATS, "of length 1"),
]

COLUMNS: dict[str, list[RecordColumn]] = {
    "cases": _CASES,
    "turns": _REPLY,
    "tokens": [*_KEY, _PATH, _OF_A_REPLY, *_TOKENS],
    "judgments": _JUDGMENTS,
    "events": _EVENTS,
    "verdicts": _VERDICTS,
    "embeddings": _EMBEDDINGS,
}
"""Columns of each table of a finished run."""

ROWS: dict[str, str] = {
    "cases": "every case that was registered, gold labels included",
    "turns": "every reply that was paid for, and every decision of a person",
    "tokens": "one row per reply with log-probabilities",
    "judgments": "what judges said, or why they did not",
    "events": "what the protocol noted, and bookkeeping",
    "verdicts": "one per case and attempt",
    "embeddings": "vectors that a protocol asked for, read back on resume",
}
"""Description of each table."""

TABLES: dict[str, pa.Schema] = {table: _schema(columns) for table, columns in COLUMNS.items()}
"""Tables of a finished run."""

TOKEN_COLUMNS = [column.name for column in _TOKENS]
"""Names of the columns with a reply's log-probabilities."""

CASES, TURNS, TOKENS, JUDGMENTS, EVENTS, VERDICTS, EMBEDDINGS = TABLES.values()

REPLIES = _schema(_REPLY + _TOKENS)
"""Journal row of one paid reply; the tables `turns`, `tokens` and `judgments` are projections of it."""

JOURNAL: dict[str, pa.Schema] = {
    "cases": CASES,
    "embeddings": EMBEDDINGS,
    "replies": REPLIES,
    "events": EVENTS,
    "verdicts": VERDICTS,
}
"""Journal streams in the order of flushing: a verdict is durable only after its replies."""

KEYS: dict[str, tuple[str, ...]] = {
    "cases": ("case_id",),
    "turns": ("case_id", "attempt", "path"),
    "tokens": ("case_id", "attempt", "path"),
    "judgments": ("case_id", "attempt", "path"),
    "events": ("case_id", "attempt", "kind", "path"),
    "verdicts": ("case_id", "attempt"),
    "embeddings": ("case_id", "attempt", "encoder", "text_hash"),
}
"""Key of a row; the first row of a key wins, unless a later one supersedes it; of events the last."""

ASKED, ABANDONED = "asked", "abandoned"
"""Event kinds: an ask is about to be paid for; it ended without a recorded reply, and its possible cost."""

DUPLICATE = "duplicate"
"""Reason for dropping the row of a reply whose path already has one."""

BOOKKEEPING_EVENTS = frozenset({ASKED, ABANDONED})
"""Events that may occur several times per key: each is one attempt to pay, or the end of one."""


def completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Batch with all columns of `schema`: columns newer than the batch are null."""
    if len(batch.schema) == len(schema):
        return batch
    known = set(batch.schema.names)
    columns = [
        batch.column(field.name) if field.name in known else pa.nulls(batch.num_rows, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def stable_columns(table: str) -> list[str]:
    """Columns of `table` that are equal in two runs of the same seed."""
    return [field.name for field in TABLES[table] if not (field.metadata or {}).get(b"volatile")]
