"""Rows of the record: their columns, and buffers that become one Arrow batch for the writer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.interface import TokenLogprobs
from moot.actors.models.usage_totals import UsageTotals, add_usage
from moot.actors.record.debate_result import VERDICT_COLUMNS, DebateResult
from moot.actors.record.schema import JOURNAL, TURNS
from moot.protocols.case import Image, LabelledCase
from moot.protocols.messages import AskResult, Intrinsic, Message, Usage

SaveTokens = Literal["none", "chosen", "all"]
"""Which token log-probabilities are recorded."""


class RowBuffer:
    """Buffer of one journal stream's rows.

    Args:
        stream: a key of `schema.JOURNAL`.
    """

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self._rows: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, **values: Any) -> None:
        """Add a row; missing columns are null."""
        self._rows.append(values)

    def flush(self) -> pa.RecordBatch:
        """Return the rows as one batch, and empty the buffer.

        Raises:
            ValueError: the stream does not have a column.
        """
        rows, self._rows = self._rows, []
        return batch_of(self.stream, rows)


def batch_of(stream: str, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Builds one Arrow batch of `stream` from rows; missing columns are null.

    Raises:
        ValueError: the stream does not have a column.
    """
    schema = JOURNAL[stream]
    given = set().union(*rows)
    if unknown := given - set(schema.names):
        raise ValueError(f"the stream {stream!r} has no column {', '.join(sorted(unknown))}")
    arrays = [
        _array([row.get(field.name) for row in rows], field.type)
        if field.name in given
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(column: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind) and any(isinstance(row, pa.Array) for row in column):
        return _lists(column, kind)
    return pa.array(column, kind)


def _lists(column: Sequence[pa.Array | None], kind: pa.DataType) -> pa.Array:
    """Arrow arrays as one list column."""
    present = [row for row in column if row is not None]
    sizes = np.fromiter((0 if row is None else len(row) for row in column), np.int32, len(column))
    offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int32)))
    missing = pa.array([row is None for row in column]) if len(present) < len(column) else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.concat_arrays(present), kind, mask=missing)


def token_columns(tokens: TokenLogprobs | None, save: SaveTokens) -> dict[str, Any]:
    """Token columns of a reply's row, as selected by `save`.

    They are converted to Arrow arrays at once: hundreds of strings per reply are read several times faster now than
    when the batch is built and they have left the processor's cache.
    """
    if tokens is None or save == "none":
        return {}
    kept: dict[str, Any] = {"token": pa.array(tokens.tokens, pa.string()), "logprob": pa.array(tokens.logprob)}
    if save == "all" and tokens.alternatives:
        kept |= {
            "alternatives": tokens.alternatives,
            "alt_token": pa.array(tokens.alt_tokens, pa.string()),
            "alt_logprob": pa.array(tokens.alt_logprob.ravel()),
        }
    return kept


def messages_json(messages: Sequence[Message]) -> str:
    """Messages in the record's format: a JSON list of [role, content]."""
    return msgspec.json.encode([(message.role, message.content) for message in messages]).decode()


def image_hashes(images: Iterable[Image]) -> list[str]:
    """Pictures in the record's format."""
    return [blake2b(image.data, digest_size=16).hexdigest() for image in images]


REPLAYED_COLUMNS = [name for name in TURNS.names if name != "messages"]
"""Columns of `turns` for `recorded_reply`, and some more."""


class RecordedReply(msgspec.Struct, frozen=True):
    """Recorded reply, for a replay."""

    path: str
    fingerprint: str
    answered: AskResult
    reused_from: str = ""


def recorded_replies(batch: pa.RecordBatch | pa.Table) -> list[tuple[str, int, RecordedReply]]:
    """(case id, attempt, reply) for each row of the stream `replies`, or of `turns`."""
    rows = batch.select(REPLAYED_COLUMNS).to_pylist()
    return [(row["case_id"], row["attempt"], recorded_reply(row)) for row in rows]


def used_nothing(failed: npt.ArrayLike, unconfirmed: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether asks used nothing although no usage is reported: they failed, and no attempt may have been billed.

    Args:
        failed: whether the outcome is `failed`, of one ask or of several.
        unconfirmed: number of attempts that may have been billed without reported usage.
    """
    return np.logical_and(failed, np.equal(unconfirmed, 0))


USAGE = ("outcome", "unconfirmed_attempts", "prompt_tokens", "completion_tokens")
"""Columns of `tokens_of`."""


def tokens_of(
    outcome: str, unconfirmed: int | None, prompt: int | None, completion: int | None
) -> tuple[int | None, int | None]:
    """Prompt and completion tokens of an ask, from its columns: 0 if it used nothing, None if unknown."""
    if prompt is None and completion is None and used_nothing(outcome == "failed", unconfirmed or 0):
        return 0, 0
    return prompt, completion


def usage_by_model(calls: pa.Table) -> dict[str, UsageTotals]:
    """Usage by model; each column that is named as a field of `UsageTotals` is added up.

    Args:
        calls: with the column `model`; one row per call.
    """
    counted = [name for name in UsageTotals.__struct_fields__ if name in calls.column_names]
    sums = calls.group_by("model").aggregate([([], "count_all"), *((name, "sum") for name in counted)])
    usage: dict[str, UsageTotals] = {}
    for row in sums.to_pylist():
        totals = {name: row[f"{name}_sum"] or 0 for name in counted}
        add_usage(usage, {row["model"] or "": UsageTotals(calls=row["count_all"], **totals)})
    return usage


def recorded_reply(row: dict[str, Any]) -> RecordedReply:
    """Recorded reply from a row of the stream `replies`, without token columns."""
    intrinsic = None
    if row["p_reason"] is not None:
        intrinsic = Intrinsic(
            normalised=row["p_normalised"],
            printed=row["p_printed"],
            raw=row["p_raw"],
            bound_shift=row["p_bound_shift"],
            stage=row["logprob_stage"] or "unknown",
            reason=row["p_reason"],
        )
    answered = AskResult(
        path=row["path"],
        reply_id=row["reply_id"],
        model=row["model"],
        text=row["text"] or "",
        data=msgspec.json.decode(row["data"]) if row["data"] is not None else None,
        answer=row["answer"],
        intrinsic=intrinsic,
        usage=Usage(row["prompt_tokens"], row["completion_tokens"], row["reasoning_tokens"]),
        outcome=row["outcome"] if row["outcome"] not in ("invalid", "cut") else "failed",
        failure=row["failure"] or "",
        error=row["error"] or "",
        free=row["prompt_tokens"] is None
        and bool(used_nothing(row["outcome"] == "failed", row["unconfirmed_attempts"] or 0)),
        prompt_cut=has_reading_mark(row["reading"], PROMPT_CUT),
    )
    return RecordedReply(row["path"], row["fingerprint"] or "", answered, row["reused_from"] or "")


INVALID_SUFFIX = "~1"
"""Suffix, of path and reply id, of an unparsable first reply that was asked again."""

CUT_SUFFIX = "~cut"
"""Suffix, with a number, of a reply that was stopped early and asked for again; it follows `INVALID_SUFFIX` for a reply
to the second ask."""

_SUFFIXED = re.compile(rf"(?P<again>{INVALID_SUFFIX})?(?P<cut>{CUT_SUFFIX}\d+)?$")


def step_of(path: str) -> str:
    """Path of the ask that a reply belongs to.

    >>> step_of("opening/agent/0~1~cut2")
    'opening/agent/0'
    """
    return _SUFFIXED.sub("", path) if "~" in path else path


def call_of(path: str) -> str | None:
    """Path of the call of a reply that was stopped early; None for any other reply.

    >>> call_of("opening/agent/0~1~cut2"), call_of("opening/agent/0~1")
    ('opening/agent/0~1', None)
    """
    found = _SUFFIXED.search(path)
    assert found is not None
    return path[: found.start("cut")] if found["cut"] else None


_ROUND = re.compile(r"(?:^|/)(?:round|turn)/(\d{1,9})(?:/|$)")
_OPENING = re.compile(r"opening(?:/|$)")


def round_of(path: str) -> int | None:
    """Round of a reply by its path; 0 for an opening, and None for a reply outside the rounds.

    >>> round_of("crit/round/2/agent/0/judge/0"), round_of("opening/agent/1"), round_of("closing/agent/0")
    (2, 0, None)
    """
    found = _ROUND.search(path)
    if found is not None:
        return int(found[1])
    return 0 if _OPENING.match(path) else None


SHARED = "shared"
"""Path of a reply that several cases share; see `is_shared_id` for its case id."""


DECISION = "decision-"
"""Prefix of the reply id of a person's decision: in the journal it is like a reply, and costs nothing."""


def merge_reasks(replies: Sequence[RecordedReply]) -> dict[str, RecordedReply]:
    """Replies by path; the usage of an unparsable first reply is added to the reply that replaced it."""
    by_path = {reply.path: reply for reply in replies}
    for path, first in list(by_path.items()):
        if not path.endswith(INVALID_SUFFIX):
            continue
        del by_path[path]
        final = by_path.get(path.removesuffix(INVALID_SUFFIX))
        if final is not None and first.answered.reply_id == final.answered.reply_id + INVALID_SUFFIX:
            of_first, of_final = first.answered.usage, final.answered.usage
            usage = of_first if final.answered.free else of_final + of_first
            reasked = (first.answered.text, first.answered.error)
            cut = first.answered.prompt_cut or final.answered.prompt_cut
            answered = msgspec.structs.replace(final.answered, usage=usage, reasked=reasked, free=False, prompt_cut=cut)
            by_path[final.path] = msgspec.structs.replace(final, answered=answered)
    return by_path


def case_columns(labelled: LabelledCase) -> dict[str, Any]:
    """Columns of the table `cases`."""
    case, reference = labelled.case, labelled.reference
    return {
        "case_id": case.id,
        "index": labelled.index,
        "content_hash": case.content_hash(),
        "question": case.question,
        "labels": list(case.labels) if case.labels is not None else None,
        "choices": list(case.choices),
        "passage": case.passage,
        "title": case.title,
        "aliases": [list(spellings) for spellings in case.aliases],
        "documents": list(case.documents),
        "gold": labelled.gold,
        "invalid": labelled.invalid,
        "domain": case.domain,
        "criterion": None if case.criterion is None else sorted_json(case.criterion),
        "scoring": reference.scoring,
        "accepted": list(reference.accepted),
        "ratings": list(reference.ratings),
        "group": reference.group,
        "part": reference.part,
        "judged": None if case.judged is None else sorted_json(case.judged),
        "tags": sorted_json(reference.tags) if reference.tags else None,
    }


def verdict_columns(result: DebateResult, gold: str | None, correct: bool | None, at: float) -> dict[str, Any]:
    """Columns of the table `verdicts`.

    Args:
        result: of the debate.
        gold: the correct label; None when unknown.
        correct: whether the answer is correct; None when it was not scored.
        at: Unix time.
    """
    return {name: getattr(result, name) for name in VERDICT_COLUMNS} | {
        "distribution": sorted_json(result.distribution) if result.distribution is not None else None,
        "payload": sorted_json(result.payload),
        "flags": list(result.flags),
        "failed": bool(result.failure),
        "gold": gold,
        "correct": correct,
        "at": at,
    }


def sorted_json(value: Any) -> str:
    """JSON that does not depend on the order of keys."""
    return msgspec.json.encode(value, order="sorted").decode()


FROM_REASONING = "reasoning"
"""Mark: the server put the reply into the hidden reasoning, and left the content empty."""


PROMPT_CUT = "prompt_cut"
"""Mark: the server seems to have read only a part of the prompt; see `moot.actors.models.prompt_cuts`."""


OVERLONG = "overlong"
"""Mark: the reply was longer than the requested tokens can be, and was cut; see `moot.actors.models.reply_bounds`."""

LENGTH = "length"
"""Finish reason of a reply that ended at its token limit, or was cut as overlong."""

NO_LOGPROBS = "no_logprobs"
"""Mark: log-probabilities were requested, and none came with the text."""


def reading_marks(
    readings: Iterable[str],
    *,
    from_reasoning: bool,
    prompt_cut: bool = False,
    overlong: bool = False,
    without_logprobs: bool = False,
) -> str | None:
    """Value of the column: the applicable marks, separated by commas; None for a reply parsed as it stood.

    Args:
        readings: see `protocols.reply_parsing.Parsed`.
        from_reasoning, prompt_cut, overlong, without_logprobs: see `FROM_REASONING`, `PROMPT_CUT`, `OVERLONG`,
            `NO_LOGPROBS`.

    >>> reading_marks(("mended", "prefix"), from_reasoning=True), reading_marks((), from_reasoning=False)
    ('mended,prefix,reasoning', None)
    """
    marks = (
        (FROM_REASONING, from_reasoning),
        (PROMPT_CUT, prompt_cut),
        (OVERLONG, overlong),
        (NO_LOGPROBS, without_logprobs),
    )
    return ",".join((*readings, *(mark for mark, applies in marks if applies))) or None


def has_reading_mark(column: str | None, mark: str) -> bool:
    """Whether a value of the column contains a mark."""
    return mark in (column or "").split(",")


def is_truncated(row: Mapping[str, Any]) -> bool:
    """Whether a reply was truncated at its token limit by the server: an overlong one was not, it is cut here.

    Args:
        row: of `turns`, with the columns `finish_reason` and `reading`.
    """
    return row["finish_reason"] == LENGTH and not has_reading_mark(row["reading"], OVERLONG)


def truncated_rows(turns: pa.Table) -> pa.ChunkedArray:
    """`is_truncated` of each row."""
    overlong = pc.match_substring(pc.fill_null(turns["reading"], ""), OVERLONG)
    return pc.and_not(pc.equal(pc.fill_null(turns["finish_reason"], ""), LENGTH), overlong)
