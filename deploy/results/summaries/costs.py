"""Token costs of a run: paid, reused, repaid, and relative to a single answer of one agent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moot.actors.models.early_stop import CUT
from moot.actors.models.prices import Price, PriceTable
from moot.actors.record.rows import INVALID_SUFFIX, call_of, step_of
from moot.actors.record.schema import ABANDONED, ASKED, DUPLICATE, CaseKey
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.record.rows import EventRow, ReplyRow
from moot.protocols.messages import Usage

_DEBATE_PATHS = ("round/", "judge/candidate/", "evidence/")
_SKIP_PATHS = ("judge/consensus/",)
_SINGLE = "opening/agent/0"
JUDGE_PASS = re.compile(r"(.+)/judge/\d+/variant/(\d+)/pass/\d+")
"""The path of one pass of one judge over one variant, as the floor names it: what is judged, and the variant."""


def run_totals(
    replies: Sequence[ReplyRow], bookkeeping: Sequence[EventRow], prices: Mapping[str, Price]
) -> dict[str, Any]:
    """Totals of tokens and money over all attempts of all cases, by field of `Summary`.

    Args:
        replies: all of the run's.
        bookkeeping: its events of the kinds `asked` and `abandoned`.
        prices: by model.
    """
    paid = [reply for reply in replies if reply.is_call]
    reused = [reply for reply in replies if reply.reused]
    unconfirmed_max = sum(reply.unconfirmed_tokens for reply in paid) + _told(bookkeeping, "tokens_at_most")
    return {
        "tokens_paid": _at_least(paid),
        "tokens_reused": _at_least(reused),
        "replies_reused": sum(reply.outcome != "failed" for reply in reused),
        "tokens_repaid": tokens_repaid(replies, bookkeeping),
        "calls": len(paid),
        "calls_without_usage": sum(_is_silent(reply) for reply in paid),
        "usage_estimated": sum(reply.estimated for reply in paid),
        "attempts_unconfirmed": sum(reply.unconfirmed for reply in paid) + _told(bookkeeping, "attempts"),
        "tokens_unconfirmed": (0, unconfirmed_max),
        "cost_usd": _usd(paid, prices),
    }


def _is_silent(reply: ReplyRow) -> bool:
    """Whether a reply may have used more than is known: a failure without a billed attempt has used nothing."""
    return reply.tokens is None and (reply.outcome != "failed" or reply.unconfirmed > 0)


def _told(bookkeeping: Iterable[EventRow], what: str) -> int:
    return sum(event.data.get(what) or 0 for event in bookkeeping if event.kind == ABANDONED)


def _usd(paid: Sequence[ReplyRow], prices: Mapping[str, Price]) -> float | None:
    known = {model: prices.get(model) or PriceTable().price(model) for model in {reply.model for reply in paid}}
    costs = 0.0
    for reply in paid:
        price = known[reply.model]
        if price is None:
            return None
        costs += price.cost_usd(Usage(reply.prompt or 0, reply.completion or 0)) or 0.0
    return costs


def _at_least(replies: Sequence[ReplyRow]) -> int | None:
    """Lower bound of the tokens: the known ones; None when no reply has a known usage."""
    silent = all(reply.prompt is None and reply.completion is None and _is_silent(reply) for reply in replies)
    return None if replies and silent else sum(map(_known, replies))


def _known(reply: ReplyRow) -> int:
    return (reply.prompt or 0) + (reply.completion or 0)


def tokens_repaid(replies: Sequence[ReplyRow], bookkeeping: Iterable[EventRow]) -> int:
    """Upper bound of the tokens paid again for asks in flight when a run was killed.

    Each ask is noted before it is paid for. An ask noted more often than it has replies on record was sent again:
    the tokens of its effective reply (and of its unreadable first one) count once per extra note, although the
    call that was lost may have been cut off early or never sent. A superseded reply is in the record, so
    its ask is no extra one, and what one that was abandoned (a budget, Ctrl-C, a deadline) may have cost is counted
    with the unconfirmed tokens. A note that was itself lost, less than one flush (1 s) before a `kill -9`, is not seen.
    """
    notes: Counter[tuple[str, int, str]] = Counter()
    for event in bookkeeping:
        if event.data.get("why") != DUPLICATE:
            notes[(*event.key, event.path)] += 1 if event.kind == ASKED else -1
    recorded = Counter((reply.case_id, reply.attempt, reply.path) for reply in replies)
    extra = {place: count - recorded[place] for place, count in notes.items() if count > recorded[place]}
    if not extra:
        return 0
    cost: Counter[tuple[str, int, str]] = Counter()
    for reply in replies:
        if not (reply.superseded or reply.reused):
            cost[(*reply.key, step_of(reply.path))] += _known(reply)
    return sum(count * cost[place] for place, count in extra.items())


def measurement_only(path: str, verdict_from: str | None) -> bool:
    """Whether a reply is measurement-only: an audit's pass, or the branch that the verdict was not taken from.

    Args:
        path: the reply's path.
        verdict_from: `skip` or `debate` in a case that ran both branches; None in any other.
    """
    if path.startswith("audit/"):
        return True
    other: tuple[str, ...] = {"skip": _DEBATE_PATHS, "debate": _SKIP_PATHS}.get(verdict_from or "", ())
    return path.startswith(other) if other else False


@dataclass(frozen=True, slots=True)
class CaseCost:
    """Token cost of one debate; None where a call's usage is unknown.

    Attributes:
        total: all effective replies, whether paid here or reused.
        measuring: the measurement-only part of `total` (see `measurement_only`).
        single: agent 0's independent answer, a re-ask included; None when there is none.
        judge_passes: requested judgments, without measurement-only ones.
    """

    total: int | None
    measuring: int
    single: int | None
    judge_passes: int = 0

    @property
    def method(self) -> int | None:
        """The tokens of the method itself, without measurement-only ones."""
        return None if self.total is None else self.total - self.measuring


def case_costs(
    replies: Iterable[ReplyRow], keys: Collection[CaseKey], verdict_from: Mapping[CaseKey, str]
) -> dict[CaseKey, CaseCost]:
    """Cost by debate in `keys`, without superseded replies: they are the cost of a crash, not of the method."""
    standing: dict[CaseKey, list[ReplyRow]] = {key: [] for key in keys}
    for reply in replies:
        if reply.key in standing and not reply.superseded:
            standing[reply.key].append(reply)
    return {key: _case_cost(found, verdict_from.get(key)) for key, found in standing.items()}


def _case_cost(replies: Sequence[ReplyRow], verdict_from: str | None) -> CaseCost:
    steps = [step_of(reply.path) for reply in replies]
    single = [reply for reply, step in zip(replies, steps, strict=True) if step == _SINGLE]
    measuring = [reply for reply in replies if measurement_only(reply.path, verdict_from)]
    judged = {step for step in steps if "/judge/" in step}.difference(step_of(reply.path) for reply in measuring)
    return CaseCost(
        total=total_tokens(replies),
        measuring=sum(map(_known, measuring)),
        single=total_tokens(single),
        judge_passes=sum(JUDGE_PASS.fullmatch(step) is not None for step in judged),
    )


def total_tokens(replies: Sequence[ReplyRow]) -> int | None:
    """Total tokens of replies; None without replies, or when one has an unknown usage."""
    tokens = [reply.tokens for reply in replies]
    known = [each for each in tokens if each is not None]
    return sum(known) if tokens and len(known) == len(tokens) else None


def relative_cost(costs: Iterable[CaseCost], shared: int = 0) -> dict[str, Any]:
    """Cost of cases relative to agent 0's openings, by field of `Summary`.

    A case with unknown usage is left out of both sums.

    Args:
        costs: of the finished cases.
        shared: tokens of replies shared by several cases, added in full.
    """
    known = [cost for cost in costs if cost.total is not None]
    both = [cost for cost in known if cost.single]
    base = sum(cost.single or 0 for cost in both)
    all_tokens = sum(cost.total or 0 for cost in both) + shared
    method = sum((cost.total or 0) - cost.measuring for cost in known) + shared
    method_both = all_tokens - sum(cost.measuring for cost in both)
    return {
        "token_cost_x": all_tokens / base if base else None,
        "token_cost_x_without_audits": method_both / base if base else None,
        "tokens_per_case": method / len(known) if known else None,
    }


class StoppedEarly(FrozenModel):
    """Replies that were stopped early. All tokens are estimates: servers do not report the usage of a stopped reply.

    Attributes:
        replies: their number.
        unknown: those without an estimate: no replacement was kept yet, or its usage is unknown. The estimates are over
            the others.
        tokens_used_estimate: their prompt tokens, taken from the replies kept in their place, and the tokens received;
            None when all are unknown.
        tokens_saved_estimate: their missing tokens if they had become as long as the kept replies; negative when those
            were shorter. The comparison is with completing them before asking again, not with a run without early
            stop. None as above.
    """

    replies: int
    unknown: int
    tokens_used_estimate: int | None
    tokens_saved_estimate: int | None


def stopped_early(replies: Sequence[ReplyRow]) -> StoppedEarly | None:
    """Sums over a run's early stops; None without any."""
    stopped = [reply for reply in replies if reply.outcome == CUT]
    if not stopped:
        return None
    kept = {(*reply.key, reply.path): reply for reply in replies if reply.outcome != CUT and not reply.superseded}
    used, saved, unknown = 0, 0, 0
    for reply in stopped:
        instead = _kept_for(reply, kept)
        if instead is None or instead.prompt is None or instead.completion is None or reply.received is None:
            unknown += 1
            continue
        used += instead.prompt + reply.received
        saved += instead.completion - reply.received
    known = unknown < len(stopped)
    return StoppedEarly(
        replies=len(stopped),
        unknown=unknown,
        tokens_used_estimate=used if known else None,
        tokens_saved_estimate=saved if known else None,
    )


def _kept_for(reply: ReplyRow, kept: Mapping[tuple[str, int, str], ReplyRow]) -> ReplyRow | None:
    """The reply that was kept for the same call: an unreadable first one, or the one that ended the ask."""
    call = call_of(reply.path) or reply.path
    step = step_of(reply.path)
    first = kept.get((*reply.key, step + INVALID_SUFFIX))
    return first if first is not None and call == step else kept.get((*reply.key, step))
