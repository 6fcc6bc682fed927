"""Replies: what models did with their asks (usable, repaired, truncated, refused, cut prompts), with warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.early_stop import CUT, REPETITION
from moot.actors.models.openai_errors import STATED
from moot.actors.models.prompt_cuts import CONTEXT_REMEDY, LEAST_CONTEXT
from moot.actors.models.token_logprobs import UNALIGNED
from moot.actors.record.rows import FROM_REASONING, NO_LOGPROBS, OVERLONG, PROMPT_CUT, has_reading_mark, is_truncated
from moot.actors.record.tables import read_table
from moot.deploy.results.record import RunRecord, counted_rows, once_per_record
from moot.deploy.results.report.blocks import Block, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.run_info import RunInfo
from moot.deploy.results.text import count
from moot.protocols.errors import IGNORES_LIMIT, RAISE_MAX_TOKENS, TRUNCATED, UNCONSTRAINED
from moot.protocols.messages import family_of
from moot.protocols.plain_replies import PLAIN
from moot.protocols.reply_json import MENDED
from moot.protocols.reply_parsing import is_outside_labels
from moot.protocols.text.repetition import LEAST_LENGTH, is_repetitive

_COMPARED = 20
"""Cases whose prompts are compared."""

_UNIT = 256
"""Contexts are a multiple of this many tokens, as a rule."""

_AT_UNIT, _ELSEWHERE = (2, 1.05), (4, 1.5)
"""Fewest different lengths of prompts, and least ratio of the longest to the shortest, that show with an equal count
that a server cuts them: at a multiple of `_UNIT` a coincidence is rare."""


@once_per_record
def cut_prompts(record: RunRecord) -> pa.Array:
    """Whether the prompt of each row of `turns` seems to have been cut.

    Besides the replies with the mark `prompt_cut`, these are the replies with a model's largest count of prompt tokens,
    if prompts of clearly different lengths have that count: it is the server's context.
    """
    turns = record.turns
    cut = pc.match_substring(pc.fill_null(turns["reading"], ""), PROMPT_CUT)
    counts = pc.coalesce(turns["prompt_tokens_stated"], turns["prompt_tokens"])
    for model in turns["model"].unique().drop_null().to_pylist():
        of_model = pc.equal(turns["model"], model)
        most = pc.max(counts.filter(of_model)).as_py()
        if most is not None and most >= LEAST_CONTEXT:
            at_most = pc.fill_null(pc.and_(of_model, pc.equal(counts, most)), False)
            if _is_context(record, turns.filter(at_most), most):
                cut = pc.or_(cut, at_most)
    return cut.combine_chunks() if isinstance(cut, pa.ChunkedArray) else cut


def cut_cases(record: RunRecord) -> pa.Array:
    """Ids of the cases whose attempt that counts has a reply to a cut prompt."""
    turns = record.turns.filter(cut_prompts(record))
    turns = record.rows_that_count(turns.filter(pc.invert(turns["superseded"])))
    return turns["case_id"].unique()


def _is_context(record: RunRecord, rows: pa.Table, count: int) -> bool:
    """Whether the prompts of rows with an equal count differ clearly in length."""
    if len(rows["case_id"].unique()) < 2:
        return False
    lengths = set(_prompt_lengths(record, rows))
    fewest, ratio = _ELSEWHERE if count % _UNIT else _AT_UNIT
    return len(lengths) >= fewest and max(lengths) >= ratio * min(lengths)


def _prompt_lengths(record: RunRecord, rows: pa.Table) -> Iterator[int]:
    """Characters of the prompts of rows, of a few cases."""
    cases = rows["case_id"].unique()[:_COMPARED]
    wanted = set(zip(*(rows[name].to_pylist() for name in _KEY), strict=True))
    found = read_table(record.folder, "turns", ["messages"], pc.field("case_id").isin(cases))
    for *key, messages in zip(*(found[name].to_pylist() for name in (*_KEY, "messages")), strict=True):
        if tuple(key) in wanted and messages is not None:
            yield len(messages)


_KEY = ("case_id", "attempt", "path")


MOST_TRUNCATED = 0.05
"""Share of truncated replies of a role above which a warning is given."""

FOLLOWED = "whether a model follows each prompt; or try another model"
"""End of the remedy for a role without a usable reply, after the command that shows it."""

USABLE = frozenset({"ok", "repaired", "reasked"})
"""Outcomes of an ask with a usable reply."""

_REFUSED = frozenset({"refused", "content_filter"})
_BY_THE_SERVER = ("HTTP ", STATED)
_COLUMNS = ("role", "template", "outcome", "failure", "error", "finish_reason", "reading", "p_reason")


class ModelReplies(FrozenModel):
    """Reply counts of one role and template, computed from the turns of a record of any version.

    Attributes:
        role: the role's family.
        template: the prompt's template; empty in a sum over templates.
        asks: completed asks.
        usable: asks with a usable reply.
        repaired: usable asks whose JSON was repaired.
        plain_text: usable asks for plain text, of a model that writes no JSON, whose reply was read so.
        from_several: usable asks whose reply stood there several times, as equal objects.
        reasked: usable asks that were asked a second time.
        wrapped: usable asks whose label stands in `\\boxed{}` or behind "Answer:".
        by_letter: usable asks whose label is a letter or digit in front of more words.
        by_prefix: usable asks whose label is the start of a longer answer.
        replies: received texts, unreadable ones included.
        truncated: replies truncated at their token limit by the server.
        repetitive: replies that repeat one passage.
        refused: refusals by the model or by a content filter.
        outside_labels: replies whose answer is not one of the labels.
        from_reasoning: replies that the server returned in the field of hidden reasoning.
        prompt_cut: replies to a prompt of which the server seems to have read only a part.
        overlong: replies that were longer than the requested tokens can be, and were cut.
        without_logprobs: replies without the log-probabilities that were requested.
        unaligned: replies whose tokens do not concatenate to their text; the answer's probability is unknown.
        reasoning_tokens: tokens of hidden reasoning; None when no server reports them.
    """

    role: str
    template: str = ""
    asks: int = 0
    usable: int = 0
    repaired: int = 0
    reasked: int = 0
    plain_text: int = 0
    from_several: int = 0
    wrapped: int = 0
    by_letter: int = 0
    by_prefix: int = 0
    replies: int = 0
    truncated: int = 0
    repetitive: int = 0
    refused: int = 0
    outside_labels: int = 0
    from_reasoning: int = 0
    prompt_cut: int = 0
    overlong: int = 0
    without_logprobs: int = 0
    unaligned: int = 0
    reasoning_tokens: int | None = None

    @property
    def noteworthy(self) -> bool:
        """Whether some ask had no usable reply, or some reply had one of the counted defects."""
        return self.usable < self.asks or any(getattr(self, name) for name in _NOTEWORTHY)


_COUNTS = tuple(name for name in ModelReplies.model_fields if name not in ("role", "template", "reasoning_tokens"))
_NOTEWORTHY = tuple(name for name in _COUNTS if name not in ("asks", "usable", "replies"))


def model_replies(*runs: RunRecord | str | Path) -> list[ModelReplies]:
    """Reply counts of the attempts that count (see `counted_rows`), sorted by role and template.

    Superseded replies and persons' decisions are excluded.

    Raises:
        RecordError: a record cannot be read.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    with_reasoning_tokens: set[tuple[str, str]] = set()
    for run in runs:
        for row in _kinds_of_replies(RunRecord.of(run)):
            key = (family_of(row["role"] or ""), row["template"] or "")
            marked = counts.setdefault(key, Counter())
            for mark in _marks(row):
                marked[mark] += row["count_all"]
            if row["reasoning_tokens_count"]:
                with_reasoning_tokens.add(key)
                marked["reasoning_tokens"] += row["reasoning_tokens_sum"]
    return [_from_counts(*key, counts[key], known=key in with_reasoning_tokens) for key in sorted(counts)]


def _kinds_of_replies(record: RunRecord) -> list[dict[str, Any]]:
    """Replies of the attempts that count, grouped by the counted properties; `count_all` is a group's size."""
    columns = ["case_id", "attempt", "superseded", "text", "reasoning_tokens", *_COLUMNS]
    turns = record.turns.select(columns).append_column("prompt_cut", cut_prompts(record))
    table = record.rows_that_count(turns)
    asked = pc.not_equal(pc.fill_null(table["role"], ""), "person")
    table = table.filter(pc.and_(asked, pc.invert(table["superseded"])))
    table = table.append_column("repetitive", _repetitive(table["text"]))
    table = table.append_column("received", table["text"].is_valid())
    counted: Any = [([], "count_all"), ("reasoning_tokens", "sum"), ("reasoning_tokens", "count")]
    kinds: list[dict[str, Any]] = (
        table.group_by([*_COLUMNS, "prompt_cut", "repetitive", "received"]).aggregate(counted).to_pylist()
    )
    return kinds


def _repetitive(texts: pa.ChunkedArray) -> pa.Array:
    """Whether each text is repetitive; False for a missing one."""
    long = pc.fill_null(pc.greater_equal(pc.utf8_length(texts), LEAST_LENGTH), False)
    found = np.zeros(len(texts), np.bool_)
    batches = (
        chunk.slice(start, _AT_ONCE) for chunk in texts.filter(long).chunks for start in range(0, len(chunk), _AT_ONCE)
    )
    found[long.to_numpy()] = [is_repetitive(text) for batch in batches for text in batch.to_pylist()]
    return pa.array(found)


_AT_ONCE = 4096
"""Texts that are converted to Python strings at a time."""


def _from_counts(role: str, template: str, found: Counter[str], *, known: bool) -> ModelReplies:
    counts = {name: found[name] for name in _COUNTS}
    tokens = found["reasoning_tokens"] if known else None
    return ModelReplies(role=role, template=template, **counts, reasoning_tokens=tokens)


_READINGS = {
    PLAIN: "plain_text",
    "several": "from_several",
    "wrapped": "wrapped",
    "letter": "by_letter",
    "prefix": "by_prefix",
}
"""Counts by mark of the column `reading`."""


def _marks(row: dict[str, Any]) -> Iterator[str]:
    outcome, error = row["outcome"], row["error"] or ""
    if outcome not in ("invalid", CUT):
        yield "asks"
    if outcome in USABLE:
        yield "usable"
        if outcome != "ok":
            yield outcome
        if outcome != "repaired" and has_reading_mark(row["reading"], MENDED):
            yield "repaired"
        yield from (count for mark, count in _READINGS.items() if has_reading_mark(row["reading"], mark))
    if row["failure"] in _REFUSED and not error.startswith(_BY_THE_SERVER):
        yield "refused"
    if not row["received"]:
        return
    yield "replies"
    if has_reading_mark(row["reading"], OVERLONG):
        yield "overlong"
    if is_truncated(row):
        yield "truncated"
    if row["finish_reason"] == REPETITION or row["repetitive"]:
        yield "repetitive"
    if is_outside_labels(error):
        yield "outside_labels"
    yield from (name for name, applies in _of_received(row).items() if applies)


def _of_received(row: dict[str, Any]) -> dict[str, bool]:
    return {
        "from_reasoning": has_reading_mark(row["reading"], FROM_REASONING),
        "prompt_cut": row["prompt_cut"],
        "without_logprobs": has_reading_mark(row["reading"], NO_LOGPROBS),
        "unaligned": row["p_reason"] == UNALIGNED,
    }


def by_role(found: Sequence[ModelReplies]) -> list[ModelReplies]:
    """Reply counts by role, summed over the templates."""
    summed: dict[str, Counter[str]] = {}
    for each in found:
        counts = summed.setdefault(each.role, Counter())
        counts.update({name: getattr(each, name) for name in _COUNTS})
        counts["reasoning_tokens"] += each.reasoning_tokens or 0
    known = {each.role for each in found if each.reasoning_tokens is not None}
    return [_from_counts(role, "", counts, known=role in known) for role, counts in summed.items()]


def warnings_of(found: Sequence[ModelReplies], info: RunInfo | None = None) -> list[str]:
    """Warnings, each with a remedy, of roles with many truncated replies or without a usable one.

    Args:
        info: the run of the replies; None if they are of several.
    """
    return [line for each in by_role(found) for line in _warnings(each, info)]


def how_followed(role: str, info: RunInfo | None) -> str:
    """Remedy for a role without a usable reply."""
    commands = "`moot doctor --model MODEL --protocol PROTOCOL`" if info is None else info.doctor_commands(role)
    return f"{commands} shows {FOLLOWED}"


def _warnings(role: ModelReplies, info: RunInfo | None) -> Iterator[str]:
    often = role.replies > 0 and role.truncated / role.replies > MOST_TRUNCATED
    if role.asks and not role.replies:
        yield f"none of the {role.asks:,} asks of {role.role} got a reply"
    elif role.asks and not role.usable:
        cure = RAISE_MAX_TOKENS if often else how_followed(role.role, info)
        yield f"none of the {role.asks:,} asks of {role.role} got a usable reply: {cure}"
    elif often:
        of = f"{role.truncated:,} of {role.replies:,} replies of {role.role}"
        yield f"{of} ({100.0 * role.truncated / role.replies:.0f} %) were truncated: {RAISE_MAX_TOKENS}"
    if role.from_reasoning:
        yield (
            f"{role.from_reasoning:,} replies of {role.role} were read from the field of hidden reasoning: "
            "start the server with its model's reasoning parser"
        )
    if role.prompt_cut:
        yield (
            f"the server seems to have cut the prompts of {role.prompt_cut:,} of {role.replies:,} replies of "
            f"{role.role}, by the tokens that it counted: {CONTEXT_REMEDY}"
        )
    if role.overlong:
        yield (
            f"{role.overlong:,} of {role.replies:,} replies of {role.role} were longer than the requested tokens can "
            f"be, and were cut: {IGNORES_LIMIT}"
        )


def members_without_replies(folder: str | Path) -> list[str]:
    """Roles without a usable reply whose family has other members with one.

    Raises:
        RecordError: the record cannot be read.
    """
    rows = _counted_replies(folder, ["role", "outcome"])
    asked = Counter((row["role"], row["outcome"]) for row in rows)
    usable = {role for role, outcome in asked if outcome in USABLE}
    families = {family_of(role) for role in usable}
    return sorted({role for role, _ in asked if role not in usable and family_of(role) in families})


def commonest_failure(folder: str | Path) -> str:
    """Most frequent failure reason of asks, with its count; empty without a failed ask.

    Raises:
        RecordError: the record cannot be read.
    """
    rows = _counted_replies(folder, ["outcome", "failure", "error"])
    failed = [row for row in rows if row["outcome"] == "failed" and not row["superseded"]]
    reasons = Counter(_reason(row["failure"] or "unknown", row["error"] or "") for row in failed)
    if not reasons:
        return ""
    (reason, count), *_ = reasons.most_common(1)
    return f"{reason} ({count:,} of {len(failed):,} failed asks)"


def _counted_replies(folder: str | Path, columns: list[str]) -> list[dict[str, Any]]:
    replies, verdicts = read_table(folder, "turns", columns), read_table(folder, "verdicts", [])
    found: list[dict[str, Any]] = counted_rows(replies, verdicts).to_pylist()
    return found


def _reason(kind: str, error: str) -> str:
    """Reason of a failure, equal for all failures of one cause: without a model's text."""
    # Older records say "not held to a schema"; the remedy is the same.
    if error.startswith(TRUNCATED) or UNCONSTRAINED.partition(" to ")[2] in error:
        return error
    return f"an answer outside the labels ({kind})" if is_outside_labels(error) else f"{kind}: {error}"


_HEADER = {
    "asks": "asks",
    "usable": "usable",
    "repaired": "repaired",
    "reasked": "reasked",
    "plain_text": "plain text",
    "from_several": "of several objects",
    "wrapped": "wrapped",
    "by_letter": "by letter",
    "by_prefix": "by prefix",
    "replies": "replies",
    "truncated": "truncated",
    "repetitive": "repetitive",
    "refused": "refused",
    "outside_labels": "outside labels",
    "prompt_cut": "prompt cut",
    "overlong": "overlong",
    "without_logprobs": "without log-probabilities",
    "unaligned": "unaligned",
    "reasoning_tokens": "reasoning tokens",
}
_ALWAYS = ("asks", "usable", "replies")

REPLIES_NOTE = "Replies of the models, by role and template: counts of asks, then of received texts."


def reply_blocks(found: Sequence[ModelReplies]) -> list[Block]:
    """Table with a row for each noteworthy role and template, without columns of zeros."""
    shown = [each for each in found if each.noteworthy]
    names = [name for name in _HEADER if name in _ALWAYS or any(getattr(each, name) for each in shown)]
    counts = [["-" if (n := getattr(each, name)) is None else count(n) for name in names] for each in shown]
    rows = [(each.role, each.template, *cells) for each, cells in zip(shown, counts, strict=True)]
    table = Table(REPLIES_NOTE, ("role", "template", *(_HEADER[name] for name in names)), rows)
    return [table] if rows else []


def replies_words(found: Sequence[ModelReplies]) -> str:
    """Reply counts by role as one line.

    >>> replies_words([ModelReplies(role="agent", template="a", asks=4, usable=3, replies=4, truncated=1)])
    'agent 3 of 4 asks usable, truncated 1'
    """
    return "; ".join(_words(each) for each in by_role(found)) or "-"


def _words(each: ModelReplies) -> str:
    counts = {word: getattr(each, name) for name, word in _HEADER.items() if name not in _ALWAYS}
    more = [f", {word} {count(n)}" for word, n in counts.items() if n]
    return f"{each.role} {count(each.usable)} of {count(each.asks)} asks usable{''.join(more)}"


_SERVED = ["role", "model", "server", "served_model", "reading", "logprob_stage"]

_MOST_NAMED = 4
"""Names of models or servers that a warning lists."""


@once_per_record
def _replies(record: RunRecord) -> list[dict[str, Any]]:
    """Received replies of the attempts that count, grouped by the columns; `count_all` is a group's size."""
    table = record.rows_that_count(record.turns.select(["case_id", "attempt", "superseded", "text", *_SERVED]))
    received = table.filter(pc.and_(table["text"].is_valid(), pc.invert(table["superseded"])))
    counted: Any = [([], "count_all")]
    groups: list[dict[str, Any]] = received.group_by(_SERVED).aggregate(counted).to_pylist()
    return groups


def server_warnings(record: RunRecord) -> Iterator[str]:
    """Warnings about replies without the log-probabilities that were requested, and about several models behind one
    name.

    Raises:
        RecordError: the record cannot be read.
    """
    groups = _replies(record)
    for role in sorted({family_of(row["role"] or "") for row in groups}):
        examined = record.info.doctor_commands(role, alone=True)
        yield from _coverage([row for row in groups if family_of(row["role"] or "") == role], role, examined)
    for model in sorted({row["model"] or "" for row in groups}):
        if model.startswith("http"):
            yield from _several_models([row for row in groups if row["model"] == model], model)


def _coverage(groups: list[dict[str, Any]], role: str, examined: str) -> Iterator[str]:
    """Warning of one role: how many replies have the log-probabilities that were requested."""
    given = sum(row["count_all"] for row in groups if row["logprob_stage"] is not None)
    lacking = Counter[str]()
    for row in groups:
        if has_reading_mark(row["reading"], NO_LOGPROBS):
            lacking[row["server"] or row["model"] or "unknown"] += row["count_all"]
    if lacking:
        without = lacking.total()
        yield (
            f"{without:,} of {given + without:,} replies of {role} came without the log-probabilities that were "
            f"requested ({_listed(lacking)}): figures of token probabilities cover the other {given:,}; "
            f"{examined} examines each server"
        )


def _several_models(groups: list[dict[str, Any]], model: str) -> Iterator[str]:
    """Warning of one configured model whose servers report different models or fingerprints."""
    served = Counter[str]()
    for row in groups:
        if row["served_model"]:
            served[row["served_model"]] += row["count_all"]
    if len(served) > 1:
        yield (
            f"the replies of {model} are of {len(served)} models or versions, as its servers report "
            f"({_listed(served)}): the figures mix them; the column `served_model` says which reply is of which"
        )


def _listed(counts: Counter[str]) -> str:
    named = [f"{name}: {n:,}" for name, n in counts.most_common(_MOST_NAMED)]
    more = len(counts) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])
