"""Token costs of a run: paid, reused, repaid, and relative to a single answer of one agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.early_stop import CUT
from moot.actors.models.prices import Price, price_of
from moot.actors.record.rows import INVALID_SUFFIX, call_of, step_of
from moot.actors.record.schema import ABANDONED, ASKED, DUPLICATE
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.record.readers import decode_json
from moot.deploy.results.record.reply_columns import CodedTexts, Flags, Ints, ReplyColumns
from moot.deploy.results.record.rows import ReplyRow
from moot.protocols.messages import Usage


def run_totals(replies: ReplyColumns, bookkeeping: pa.Table, prices: Mapping[str, Price]) -> dict[str, Any]:
    """Totals of tokens, calls and money over all attempts of all cases, by field of `Summary`.

    Args:
        replies: all replies of the run.
        bookkeeping: its events of the kinds `asked` and `abandoned`.
        prices: prices by model.
    """
    paid, reused = replies.is_call, replies.flag("reused")
    unconfirmed = {name: int(replies.count(name)[paid].sum()) for name in ("unconfirmed", "unconfirmed_tokens")}
    return {
        "tokens_paid": _at_least(replies, paid),
        "tokens_reused": _at_least(replies, reused),
        "replies_reused": int((reused & ~replies.is_failed).sum()),
        "tokens_repaid": tokens_repaid(replies, bookkeeping),
        "calls": int(paid.sum()),
        "calls_without_usage": int((paid & replies.lacks_usage).sum()),
        "usage_estimated": int((paid & replies.flag("estimated")).sum()),
        "attempts_unconfirmed": unconfirmed["unconfirmed"] + _abandoned(bookkeeping, "attempts"),
        "tokens_unconfirmed": (0, unconfirmed["unconfirmed_tokens"] + _abandoned(bookkeeping, "tokens_at_most")),
        "cost_usd": _usd(replies, paid, prices),
    }


def _abandoned(bookkeeping: pa.Table, field: str) -> int:
    """Sum of a field over the abandoned asks."""
    data = bookkeeping.filter(pc.equal(bookkeeping["kind"], ABANDONED))["data"]
    return sum(decode_json(each).get(field) or 0 for each in data.to_pylist())


def _usd(replies: ReplyColumns, paid: Flags, prices: Mapping[str, Price]) -> float | None:
    """Cost of the reported usage, in USD; None when a model's price is unknown."""
    total = 0.0
    for code, model in enumerate(replies.model.texts):
        rows = paid & (replies.model.codes == code)
        if not rows.any():
            continue
        price = price_of(model, prices)
        if price is None:
            return None
        used = (int(replies.count(name)[rows].sum()) for name in ("prompt", "completion"))
        total += price.cost_usd(Usage(*used)) or 0.0
    return total


def _at_least(replies: ReplyColumns, some: Flags) -> int | None:
    """Lower bound of the tokens: the sum of the known ones; None when no reply has a known usage."""
    unknown = ~replies.is_known("prompt") & ~replies.is_known("completion") & replies.lacks_usage
    return None if some.any() and unknown[some].all() else int(replies.known_tokens[some].sum())


def tokens_repaid(replies: ReplyColumns, bookkeeping: pa.Table) -> int:
    """Upper bound of the tokens paid again for asks in flight when a run was killed.

    An `asked` event is recorded before an ask is paid for. An ask with more of these events than recorded replies was
    sent again: each extra event counts the tokens of its effective reply (and of its unreadable first one), although
    the lost call may have been interrupted early or never sent. A superseded reply is in the record, so its ask is not
    extra. The cost of an abandoned ask (a budget, Ctrl-C, a deadline) is part of the unconfirmed tokens. An event that
    was itself lost, less than one flush (1 s) before a `kill -9`, is not counted.
    """
    notes = pa.concat_tables([bookkeeping.filter(pc.equal(bookkeeping["kind"], ASKED)), _not_duplicate(bookkeeping)])
    asked = np.where(pc.equal(notes["kind"], ASKED).to_numpy(), 1, -1)
    noted_at, recorded_at, places = _common_places(notes, replies.places)
    extra = np.bincount(noted_at, asked, places) - np.bincount(recorded_at, minlength=places)
    if not (extra > 0).any():
        return 0
    again = {place: int(extra[code]) for code, place in zip(noted_at.tolist(), _places(notes), strict=True)}
    again = {place: n for place, n in again.items() if n > 0}
    cost: Counter[tuple[str, int, str]] = Counter()
    effective = ~(replies.flag("superseded") | replies.flag("reused"))
    of_debates = replies.case.that({case_id for case_id, _, _ in again}.__contains__)
    for reply in replies.rows(effective & of_debates):
        cost[(*reply.key, step_of(reply.path))] += (reply.prompt or 0) + (reply.completion or 0)
    return sum(n * cost[place] for place, n in again.items())


def _not_duplicate(bookkeeping: pa.Table) -> pa.Table:
    """Abandoned asks, without those of a reply that was received twice."""
    abandoned = bookkeeping.filter(pc.equal(bookkeeping["kind"], ABANDONED))
    kept = [decode_json(each).get("why") != DUPLICATE for each in abandoned["data"].to_pylist()]
    return abandoned.filter(pa.array(kept, pa.bool_()))


def _places(table: pa.Table) -> list[tuple[str, int, str]]:
    return list(zip(*(table[name].to_pylist() for name in ("case_id", "attempt", "path")), strict=True))


def _common_places(one: pa.Table, other: pa.Table) -> tuple[Ints, Ints, int]:
    """Codes of (case, attempt, path) in the rows of two tables, from 0 and equal for equal keys; and their number."""
    together = pa.concat_tables([each.select(["case_id", "attempt", "path"]) for each in (one, other)])
    case, path = (CodedTexts.of(together[name]) for name in ("case_id", "path"))
    attempt = np.asarray(together["attempt"].to_numpy(), np.int64)
    keys = (case.codes * (attempt.max(initial=0) + 1) + attempt) * max(1, len(path.texts)) + path.codes
    distinct, codes = np.unique(keys, return_inverse=True)
    return codes[: one.num_rows], codes[one.num_rows :], len(distinct)


class StoppedEarly(FrozenModel):
    """Replies that were stopped early. All tokens are estimates: servers do not report the usage of a stopped reply.

    Attributes:
        replies: their number.
        unknown: those without an estimate, because no replacement is recorded or its usage is unknown. The estimates
            are over the others.
        tokens_used_estimate: their prompt tokens, taken from the replies that replaced them, plus the tokens received;
            None when all are unknown.
        tokens_saved_estimate: completion tokens of the replacements minus the tokens received; negative when the
            replacements were shorter. The baseline completes each stopped reply before asking again; it is not a run
            without early stop. None when all are unknown.
    """

    replies: int
    unknown: int
    tokens_used_estimate: int | None
    tokens_saved_estimate: int | None


def stopped_early(replies: ReplyColumns) -> StoppedEarly | None:
    """Totals of a run's early stops; None without any."""
    is_stopped = replies.outcome.that(lambda outcome: outcome == CUT)
    if not is_stopped.any():
        return None
    stopped = replies.rows(is_stopped)
    debates = {reply.case_id for reply in stopped}
    effective = replies.rows(~is_stopped & ~replies.flag("superseded") & replies.case.that(debates.__contains__))
    kept = {(*reply.key, reply.path): reply for reply in effective}
    used, saved, unknown = 0, 0, 0
    for reply in stopped:
        replacement = _replacement_of(reply, kept)
        if (
            replacement is None
            or replacement.prompt is None
            or replacement.completion is None
            or reply.received is None
        ):
            unknown += 1
            continue
        used += replacement.prompt + reply.received
        saved += replacement.completion - reply.received
    known = unknown < len(stopped)
    return StoppedEarly(
        replies=len(stopped),
        unknown=unknown,
        tokens_used_estimate=used if known else None,
        tokens_saved_estimate=saved if known else None,
    )


def _replacement_of(reply: ReplyRow, kept: Mapping[tuple[str, int, str], ReplyRow]) -> ReplyRow | None:
    """Reply that replaced a stopped one: an unreadable first reply of the ask, or its last one."""
    call = call_of(reply.path) or reply.path
    step = step_of(reply.path)
    first = kept.get((*reply.key, step + INVALID_SUFFIX))
    return first if first is not None and call == step else kept.get((*reply.key, step))
