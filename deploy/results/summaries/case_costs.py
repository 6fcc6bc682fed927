"""Cost of each debate in tokens and USD, and relative to a single answer of one agent."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from moot.actors.models.prices import PER_TOKENS, Price, price_of
from moot.actors.record.rows import step_of
from moot.actors.record.schema import CaseKey
from moot.deploy.results.record.reply_columns import CodedTexts, Flags, Ints, ReplyColumns
from moot.deploy.results.record.rows import ReplyRow
from moot.metrics.distribution import Floats

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
