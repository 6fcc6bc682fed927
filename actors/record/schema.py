"""Columns of the record: names, types, meanings and volatility.

A *volatile* column (times, latencies, ids of processes and of paid replies) may differ between two runs of the same
seed; every other column is equal after sorting by key, with any engine and placement. Column names are stable, because
other tools read them. `SCHEMA_VERSION` changes when a column is renamed, removed or changes its meaning. The reference
page of columns is generated from this module.
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
    RecordColumn("index", _INT64, "position in the file, from 0"),
    RecordColumn("content_hash", _TEXT, "hash of everything but the id; compared on resume"),
    RecordColumn("question", _TEXT, "as in the file"),
    RecordColumn("labels", _TEXTS, "closed set of answers; null for free text"),
    RecordColumn("choices", _TEXTS, "texts of lettered labels, in their order"),
    RecordColumn("passage", _TEXT, "the evidence; may be empty"),
    RecordColumn("title", _TEXT, "heading of the passage; may be empty"),
    RecordColumn("aliases", pa.list_(_TEXTS), "other spellings of each label; null in records older than the column"),
    RecordColumn("documents", _TEXTS, "texts for retrieval; null in records older than the column"),
    RecordColumn("gold", _TEXT, "right answer; null where the file has none"),
    RecordColumn("invalid", _TEXT, "reason why the row is not a valid case; empty for a valid one"),
    RecordColumn(
        "domain",
        _TEXT,
        "kind of the requested answer; null where the task does not state it; this and the next five columns are null "
        "in records older than the columns",
    ),
    RecordColumn(
        "criterion", _TEXT, "JSON: the trait that the passage is scored on, its scale and guide; null otherwise"
    ),
    RecordColumn(
        "scoring", _TEXT, "how an answer is compared with the right one: `label`, `number`, `short answer` or `score`"
    ),
    RecordColumn("accepted", _TEXTS, "all right answers, where `gold` is not the only one"),
    RecordColumn("ratings", pa.list_(_FLOAT), "human raters' scores, null for a missing one"),
    RecordColumn("group", _TEXT, "group of dependent cases, such as those on one essay; empty for an independent case"),
    RecordColumn(
        "part",
        _TEXT,
        "part of the task, such as an essay set; figures of different parts are never pooled; empty for a task of one "
        "part",
    ),
    RecordColumn(
        "judged", _TEXT, "JSON: the reply to judge, with the messages that it answers; null for a case to debate"
    ),
    RecordColumn("tags", _TEXT, "JSON: further properties by name, such as the category; null without any"),
]

_REPLY = [
    *_KEY,
    _PATH,
    RecordColumn("role", _TEXT, "the asked role: `agent/0`, `judge/0`, `person`"),
    RecordColumn("model", _TEXT, "name of the role's model as configured"),
    RecordColumn("template", _TEXT, "name of the prompt template"),
    RecordColumn("template_hash", _TEXT, "hash of the template's text"),
    RecordColumn(
        "fingerprint",
        _TEXT,
        "hash of everything that is sent and of how it is read: model, decoding, template, persona, slots, images",
    ),
    RecordColumn("sample", _INT32, "number of the sample among equal asks"),
    RecordColumn("temperature", _FLOAT, "as requested; null is the server's default"),
    RecordColumn("top_p", _FLOAT, "as requested; null is the server's default"),
    RecordColumn("max_tokens", _INT32, "as requested"),
    RecordColumn("messages", _TEXT, "JSON: the messages that were sent"),
    RecordColumn("image_hashes", _TEXTS, "hashes of the pictures that were sent"),
    RecordColumn("text", _TEXT, "the reply as received"),
    RecordColumn("data", _TEXT, "JSON: the parsed and validated reply; null if it failed"),
    RecordColumn("answer", _TEXT, "label, or normalised free text; null without one"),
    RecordColumn("p_normalised", _FLOAT, "probability of the answer among the labels; null is unknown"),
    RecordColumn("p_printed", _FLOAT, "the paper's sigma(l) = p/(1+p)"),
    RecordColumn("p_raw", _FLOAT, "the answer's probability at its own token"),
    RecordColumn(
        "p_bound_shift", _FLOAT, "largest error of `p_normalised` through labels that are not among the alternatives"
    ),
    RecordColumn("p_reason", _TEXT, "reason why `p_normalised` is null"),
    RecordColumn(
        "logprob_stage",
        _TEXT,
        "`before` or `after` temperature, `raw` or `masked` (before or after a schema's mask), or `unknown`",
    ),
    RecordColumn(
        "held",
        _FLAG,
        "whether decoding was constrained to a schema, or may have been (a replay of a record without this column); "
        "null without a reply, and in records older than the column",
    ),
    RecordColumn(
        "outcome", _TEXT, "`ok`, `repaired`, `reasked`, `failed`, `invalid` (an unreadable first reply), `cut`"
    ),
    RecordColumn("failure", _TEXT, "kind of failure; empty without one"),
    RecordColumn("error", _TEXT, "message of the failure"),
    RecordColumn(
        "finish_reason",
        _TEXT,
        "the server's word, or `length` for its word for that; `cut` or `repetition` if moot stopped the stream",
    ),
    RecordColumn(
        "prompt_tokens", _INT32, "billed; null if the server does not report them; see `prompt_tokens_stated`"
    ),
    RecordColumn(
        "completion_tokens", _INT32, "billed; null if the server does not report them; see `completion_tokens_stated`"
    ),
    RecordColumn(
        "completion_tokens_estimate", _INT32, "tokens received of a reply that was stopped early; null otherwise"
    ),
    RecordColumn(
        "prompt_tokens_stated",
        _INT32,
        "the count that the server reported, if it or the count of the reply is too small for the texts; the count "
        "that is too small is then an estimate; null otherwise; this and the next column are null in records older "
        "than the columns",
    ),
    RecordColumn("completion_tokens_stated", _INT32, "the same for the reply"),
    RecordColumn(
        "reasoning_tokens",
        _INT32,
        "tokens of hidden reasoning; null if the server does not report them; this and the next two columns are null "
        "in records older than the columns",
    ),
    RecordColumn("reasoning", _TEXT, "hidden reasoning, with `--save-reasoning`; null otherwise"),
    RecordColumn(
        "reading",
        _TEXT,
        "deviations, comma-separated: `plain` (asked for and read as plain text), `mended`, `several`, `wrapped`, "
        "`letter`, `prefix`, `reasoning`, `prompt_cut`, `overlong`, `no_logprobs` (requested, and none came)",
    ),
    RecordColumn("reply_id", _TEXT, "unique for each reply that was paid for", volatile=True),
    RecordColumn("supersedes", _TEXT, "the reply that this one replaces", volatile=True),
    RecordColumn(
        "reused_from",
        _TEXT,
        "the reused reply, as `RUN:CASE/ATTEMPT/PATH`; null for a paid reply",
        volatile=True,
    ),
    RecordColumn(
        "latency_s",
        _FLOAT,
        "seconds from the ask to its reply, with waiting, retries and an unreadable first reply",
        volatile=True,
    ),
    RecordColumn(
        "waited_s",
        _FLOAT,
        "seconds of `latency_s` spent waiting for rate limits or after a 429; null in records older than the column",
        volatile=True,
    ),
    RecordColumn("http_attempts", _INT16, "number of requests, with retries", volatile=True),
    RecordColumn(
        "unconfirmed_attempts",
        _INT16,
        "attempts that may have been billed although the server reported no usage",
        volatile=True,
    ),
    RecordColumn("unconfirmed_tokens_max", _INT64, "upper bound of the tokens in them", volatile=True),
    _AT,
    RecordColumn("process_id", _INT32, "id of the process that asked", volatile=True),
    RecordColumn(
        "server",
        _TEXT,
        "of a pool, the server that replied; null for other models; this and the next column are null in records older "
        "than the columns",
        volatile=True,
    ),
    RecordColumn(
        "served_model",
        _TEXT,
        "the model's name and fingerprint as the server reported them; null without a report",
        volatile=True,
    ),
]

_TOKENS = [
    RecordColumn("token", _TEXTS, "the T tokens of the reply"),
    RecordColumn("logprob", _FLOATS, "log-probability of each token, in nats"),
    RecordColumn("alternatives", _INT16, "K, the number of alternatives per token"),
    RecordColumn("alt_token", _TEXTS, "tokens of the alternatives, T x K, flattened"),
    RecordColumn("alt_logprob", _FLOATS, "their log-probabilities, T x K, flattened; NaN where fewer were received"),
]

_JUDGMENTS = [
    *_KEY,
    _PATH,
    RecordColumn("judge", _TEXT, "role of the judge: `judge/0`, ..."),
    RecordColumn("model", _TEXT, "name of the judge's model"),
    RecordColumn("support", _TEXT, "`supported`, `contradicted`, `not covered`; null if the judgment is missing"),
    RecordColumn("score", _FLOAT, "in [0, 1]; null, never 0, if the judgment is missing"),
    RecordColumn("rationale", _TEXT, "one sentence"),
    RecordColumn("failure", _TEXT, "kind of failure of a missing judgment; else empty"),
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
    RecordColumn("answer", _TEXT, "the verdict's answer; null without one"),
    RecordColumn("how", _TEXT, "the way to the verdict: `skipped`, `stable-agree`, ..., `failed`"),
    RecordColumn("confidence", _FLOAT, "in [0, 1]; null is unknown"),
    RecordColumn("distribution", _TEXT, "JSON: probability or share by label"),
    RecordColumn("rounds", _INT16, "debate rounds after the openings"),
    RecordColumn("flags", _TEXTS, "caveats of the verdict, as codes"),
    RecordColumn("payload", _TEXT, "JSON: the protocol's own result"),
    RecordColumn("failed", _FLAG, "whether the case failed"),
    RecordColumn("failure", _TEXT, "kind of failure"),
    RecordColumn("error", _TEXT, "message of the failure"),
    RecordColumn("gold", _TEXT, "right answer; null without one"),
    RecordColumn("correct", _FLAG, "whether the answer is right; null where it cannot be scored"),
    RecordColumn("calls", _INT32, "number of replies that led to the verdict"),
    RecordColumn("prompt_tokens", _INT64, "prompt tokens of those replies"),
    RecordColumn("completion_tokens", _INT64, "completion tokens of those replies"),
    RecordColumn("calls_without_usage", _INT32, "number of those replies whose server reported no usage"),
    RecordColumn(
        "wall_s", _FLOAT, "seconds from opening to verdict, in the session that ended the debate", volatile=True
    ),
    _AT,
]

_EMBEDDINGS = [
    *_KEY,
    RecordColumn("encoder", _TEXT, "name of the encoder"),
    RecordColumn(
        "text_hash",
        _TEXT,
        "the embedded text: 32 hex digits, BLAKE2b with 16 bytes of its UTF-8 form; "
        "SELENE's events `gate` and `round` name those of the replies in `embedded`",
    ),
    RecordColumn("vector", _FLOATS, "the embedding, with norm 1"),
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
    "cases": "every registered case, gold labels included",
    "turns": "every reply, paid or reused, every failed ask, and every decision of a person",
    "tokens": "tokens of the replies with log-probabilities, one row per reply",
    "judgments": "every judgment of a judge, missing ones included",
    "events": "events of the protocol, and bookkeeping",
    "verdicts": "one verdict per case and attempt",
    "embeddings": "embeddings that a protocol asked for, reused on resume",
}
"""Description of each table."""

TABLES: dict[str, pa.Schema] = {table: _schema(columns) for table, columns in COLUMNS.items()}
"""Tables of a finished run."""

TOKEN_COLUMNS = [column.name for column in _TOKENS]
"""Names of the columns with a reply's log-probabilities."""

CASES, TURNS, TOKENS, JUDGMENTS, EVENTS, VERDICTS, EMBEDDINGS = TABLES.values()

REPLIES = _schema(_REPLY + _TOKENS)
"""Journal row of a reply; the tables `turns`, `tokens` and `judgments` are projections of it."""

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
"""Key columns by table. The first row of a key counts, unless a later one supersedes it; of events the last counts."""

ASKED, ABANDONED = "asked", "abandoned"
"""Event kinds: an ask is about to be paid for; an ask has ended without a recorded reply, with its possible cost."""

DUPLICATE = "duplicate"
"""Reason for dropping the row of a reply whose path already has one."""

LOST = "lost"
"""Reason for ending an ask whose recorded reply was lost by damage, after the verdict of its debate."""

CANCELLED, RESUMED = "debate-cancelled", "debate-resumed"
"""Event kinds of the record's writer: a debate was cancelled without a verdict; its case was submitted again."""

BOOKKEEPING_EVENTS = frozenset({ASKED, ABANDONED, CANCELLED, RESUMED})
"""Events that may occur several times per key: an attempt to pay or the end of one, a cancellation or its end."""


def completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Batch with all columns of `schema`: columns newer than the batch are null."""
    if batch.num_columns == len(schema):
        return batch
    known = set(batch.schema.names)
    columns = [
        batch.column(field.name) if field.name in known else pa.nulls(batch.num_rows, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def stable_columns(table: str) -> list[str]:
    """Columns of `table` that are equal in two runs of the same seed."""
    return [field.name for field in TABLES[table] if not (field.metadata or {}).get(b"volatile")]
