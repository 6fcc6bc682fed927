"""Costs: calls, tokens and money of a run and of each debate, also relative to one agent's single answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.early_stop import CUT
from moot.actors.models.prices import PER_TOKENS, Price, price_of
from moot.actors.record.rows import INVALID_SUFFIX, call_of, step_of, used_nothing
from moot.actors.record.schema import ABANDONED, ASKED, DUPLICATE, CaseKey
from moot.deploy.results.record import (
    CodedTexts,
    Flags,
    Ints,
    ReplyColumns,
    ReplyRow,
    RunRecord,
    decode_json,
)
from moot.deploy.results.report.display import FrozenModel
from moot.metrics.distribution import Floats
from moot.protocols.errors import UNSENT
from moot.protocols.messages import Usage
from moot.protocols.selene.events import BranchesCompared, SkipAudited

USED = ("prompt_tokens", "completion_tokens")

CALL_COLUMNS = ["role", "model", "outcome", "failure", "unconfirmed_attempts", "reused_from", *USED]
"""Columns of `turns` that these functions read."""


def paid_calls(turns: pa.Table) -> pa.Table:
    """Rows for which this run called a model: not a person's, not reused, and sent."""
    role, failure, reused = (pc.fill_null(turns[name], "") for name in ("role", "failure", "reused_from"))
    paid = pc.and_(pc.not_equal(role, "person"), pc.not_equal(failure, UNSENT))
    return turns.filter(pc.and_(paid, pc.equal(reused, "")))


def lacks_usage(calls: pa.Table) -> pa.ChunkedArray:
    """Whether the usage of each call is unknown in part; a failed call without a billed attempt has used nothing."""
    prompt, completion = (calls[name] for name in USED)
    return pc.and_(pc.or_(prompt.is_null(), completion.is_null()), pc.invert(_is_free(calls)))


def has_known_tokens(calls: pa.Table) -> pa.ChunkedArray:
    """Whether the usage of each call is known at least in part; that of a free call is known."""
    prompt, completion = (calls[name] for name in USED)
    return pc.or_(pc.or_(prompt.is_valid(), completion.is_valid()), _is_free(calls))


def _is_free(calls: pa.Table) -> pa.Array:
    failed = pc.equal(pc.fill_null(calls["outcome"], ""), "failed")
    return pa.array(used_nothing(failed, pc.fill_null(calls["unconfirmed_attempts"], 0)))


_DEBATE_PATHS = ("round/", "judge/candidate/", "evidence/")
_SKIP_PATHS = ("judge/consensus/",)
_SINGLE = "opening/agent/0"
_OPENINGS = "opening/agent/"
JUDGE_PASS = re.compile(r"(.+)/judge/\d+/variant/(\d+)/pass/\d+")
"""Path of one pass of one judge over one variant; its groups are the judged step and the variant."""


def measurement_only(path: str, verdict_from: str | None) -> bool:
    """Whether a reply is measurement-only: an audit's pass, or of the branch that does not decide the verdict.

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
        total: all effective replies, paid here or reused.
        measuring: the measurement-only part of `total` (see `measurement_only`).
        single: agent 0's independent answer, a re-ask included; None when there is none.
        judge_passes: requested judgments, without measurement-only ones.
        openings: all agents' independent answers, re-asks included; None when there is none.
    """

    total: int | None
    measuring: int
    single: int | None
    judge_passes: int = 0
    openings: int | None = None

    @property
    def method(self) -> int | None:
        """Tokens of the method itself, without measurement-only ones."""
        return None if self.total is None else self.total - self.measuring


@dataclass(frozen=True, slots=True)
class CasePrice:
    """Cost of one debate in USD at the run's prices; None where a call's usage or price is unknown.

    Attributes:
        method, single, openings: costs of the parts of `CaseCost` with these names.
    """

    method: float | None
    single: float | None
    openings: float | None


def case_costs(
    replies: ReplyColumns,
    keys: Collection[CaseKey],
    verdict_from: Mapping[CaseKey, str],
    prices: Mapping[str, Price],
) -> dict[CaseKey, tuple[CaseCost, CasePrice]]:
    """Costs by debate in `keys`, without superseded replies: a crash costs them, not the method.

    Args:
        replies: all replies of the run.
        keys: the debates.
        verdict_from: see `measurement_only`; without debates that ran one branch.
        prices: prices by model.
    """
    order = list(keys)
    debate = _debates(replies, order)
    rows = np.flatnonzero((debate >= 0) & ~replies.flag("superseded"))
    debate, path = debate[rows], replies.path.codes[rows]
    steps = CodedTexts.of(pa.chunked_array([pa.array(map(step_of, replies.path.texts), pa.string())]))
    step = steps.codes[path]
    branches = np.array([_BRANCHES.get(verdict_from.get(key, ""), 0) for key in order], np.int64)
    measuring = _measuring(replies.path.texts, path, branches[debate])
    is_single = np.array([text == _SINGLE for text in steps.texts], np.bool_)[step]
    is_opening = np.array([text.startswith(_OPENINGS) for text in steps.texts], np.bool_)[step]
    is_pass = np.array(["/judge/" in s and JUDGE_PASS.fullmatch(s) is not None for s in steps.texts], np.bool_)[step]
    tokens, known, n = replies.known_tokens[rows], ~replies.lacks_usage[rows], len(order)
    parts = (slice(None), is_single, is_opening)
    totals, singles, openings = (
        [None if total is None else int(total) for total in _totals(debate[some], tokens[some], known[some], n)]
        for some in parts
    )
    of_measuring = np.bincount(debate[measuring], tokens[measuring], n).astype(np.int64).tolist()
    usd, is_priced = _usd(replies, prices)
    in_usd = (
        _totals(debate[some], usd[rows][some], is_priced[rows][some], n) for some in (~measuring, is_single, is_opening)
    )
    asked = debate * len(steps.texts) + step
    passes = np.setdiff1d(asked[is_pass], asked[measuring])
    judge_passes = np.bincount(passes // max(1, len(steps.texts)), minlength=n).tolist()
    in_tokens = map(CaseCost, totals, of_measuring, singles, judge_passes, openings)
    return dict(zip(order, zip(in_tokens, map(CasePrice, *in_usd), strict=True), strict=True))


def _usd(replies: ReplyColumns, prices: Mapping[str, Price]) -> tuple[Floats, Flags]:
    """Cost of each reply in USD, and whether it is known."""
    of_models = [price_of(model, prices) for model in replies.model.texts]
    per_token = np.array([(0.0, 0.0) if each is None else (each.input, each.output) for each in of_models])
    per_token = per_token.reshape(-1, 2)[replies.model.codes] / PER_TOKENS
    usd: Floats = replies.count("prompt") * per_token[:, 0] + replies.count("completion") * per_token[:, 1]
    has_price = np.array([each is not None for each in of_models], np.bool_)[replies.model.codes]
    return usd, has_price & ~replies.lacks_usage


_BRANCHES = {"": 0, "skip": 1, "debate": 2}
"""Codes of the branch that decides a verdict; 0 for debates that ran one branch."""


def _debates(replies: ReplyColumns, order: Sequence[CaseKey]) -> Ints:
    """Index of each reply's debate in `order`; -1 for other debates."""
    attempts = max((attempt for _, attempt in order), default=0) + 1
    place = np.full((len(replies.case.texts), attempts), -1, np.int64)
    codes = {case_id: code for code, case_id in enumerate(replies.case.texts)}
    for number, (case_id, attempt) in enumerate(order):
        if (code := codes.get(case_id)) is not None:
            place[code, attempt] = number
    inside = replies.attempt < attempts
    found: Ints = np.where(inside, place[replies.case.codes, np.where(inside, replies.attempt, 0)], -1)
    return found


def _measuring(paths: Sequence[str], path: Ints, branch: Ints) -> Flags:
    """Whether each reply is measurement-only, by its path and by the branch of its debate's verdict."""
    table = np.array([[measurement_only(text, of) for text in paths] for of in _BRANCHES], np.bool_)
    found: Flags = table.reshape(len(_BRANCHES), len(paths))[branch, path]
    return found


def _totals(debate: Ints, amounts: Ints | Floats, known: Flags, n: int) -> list[float | None]:
    """Sum of the amounts by debate; None without replies, or when one amount is unknown."""
    sums = np.bincount(debate, amounts, n)
    counts, knowns = np.bincount(debate, minlength=n), np.bincount(debate[known], minlength=n)
    whole = (counts > 0) & (counts == knowns)
    return [total if known_all else None for total, known_all in zip(sums.tolist(), whole.tolist(), strict=True)]


def total_tokens(replies: Sequence[ReplyRow]) -> int | None:
    """Total tokens of replies; None without replies, or when the usage of one is unknown."""
    tokens = [reply.tokens for reply in replies]
    known = [each for each in tokens if each is not None]
    return sum(known) if tokens and len(known) == len(tokens) else None


def relative_cost(costs: Iterable[CaseCost], shared: int = 0) -> dict[str, Any]:
    """Cost of cases relative to agent 0's openings, by field of `Summary`.

    A case with unknown usage is excluded.

    Args:
        costs: costs of the finished cases.
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


def verdict_sources(record: RunRecord) -> dict[CaseKey, str]:
    """Branch of the verdict, `skip` or `debate`, of each debate that ran both branches."""
    both = (*record.typed_events(BranchesCompared), *record.typed_events(SkipAudited))
    return {event.key: branches.verdict_from for event, branches in both}


def costs_of_finished(record: RunRecord) -> dict[CaseKey, CaseCost]:
    """Token costs of the finished debates."""
    return {key: tokens for key, (tokens, _) in record.once(_costs).items()}


def prices_of_finished(record: RunRecord) -> dict[CaseKey, CasePrice]:
    """Costs of the finished debates in USD."""
    return {key: usd for key, (_, usd) in record.once(_costs).items()}


def _costs(record: RunRecord) -> dict[CaseKey, tuple[CaseCost, CasePrice]]:
    finished = [verdict.key for verdict in record.verdicts if not verdict.failed]
    return case_costs(record.replies, finished, verdict_sources(record), record.info.prices)


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
        "cost_usd": _total_usd(replies, paid, prices),
    }


def _abandoned(bookkeeping: pa.Table, field: str) -> int:
    """Sum of a field over the abandoned asks."""
    data = bookkeeping.filter(pc.equal(bookkeeping["kind"], ABANDONED))["data"]
    return sum(decode_json(each).get(field) or 0 for each in data.to_pylist())


def _total_usd(replies: ReplyColumns, paid: Flags, prices: Mapping[str, Price]) -> float | None:
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
