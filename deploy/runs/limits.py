"""Limits of a run: rates and concurrency by endpoint, prices, budgets, and earlier use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.context_factory import endpoint_of
from moot.actors.limits.ledger import Ledger
from moot.actors.limits.settings import Budget, EndpointLimits
from moot.actors.models.prices import FREE, Price, price_table
from moot.actors.models.resolve import canonical_model
from moot.actors.models.small.spec import SmallModelSpec, is_small
from moot.actors.models.usage_totals import UsageTotals, add_usage, budget_use
from moot.actors.record.folder import RunFolder
from moot.actors.record.rows import usage_by_model
from moot.actors.record.schema import ABANDONED
from moot.actors.record.tables import read_table
from moot.deploy.results.record import decode_json
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import ConfigError, unknown_name

_ROUNDING = 1e-9
_FLAGS = ("requests_per_min", "tokens_per_min", "concurrency")


def endpoint_limits(config: RunConfig, members: Iterable[RoleBinding]) -> dict[str, EndpointLimits]:
    """Limits by endpoint: each the model's entry in `limits`, else the run's limit, else the model's default.

    Raises:
        ConfigError: `limits` names a model that the run does not use.
    """
    members = list(members)
    names = {member.model for member in members}
    own_limits = {canonical_model(name): limits for name, limits in config.limits.items()}
    for name in own_limits:
        if name not in names:
            raise unknown_name("model in `limits`", name, names)
    for_all = {flag: bound for flag in _FLAGS if (bound := getattr(config, flag)) is not None}
    by_endpoint = {}
    for member in members:
        own = own_limits.get(member.model, EndpointLimits()).model_dump(exclude_none=True)
        limits = EndpointLimits(**{**_default_endpoint_limits(member.model), **for_all, **own})
        if limits != EndpointLimits():
            by_endpoint[endpoint_of(member)] = limits
    return by_endpoint


def _default_endpoint_limits(model: str) -> dict[str, int]:
    """Default limits of a model: `small` is limited to its slots, because a queued call would exceed its deadline."""
    return {"concurrency": SmallModelSpec.parse(model).slots} if is_small(model) else {}


def known_prices(config: RunConfig, members: Iterable[RoleBinding]) -> dict[str, Price]:
    """Known prices by model name.

    Raises:
        ConfigError: the file of prices is invalid, or a cost budget cannot be enforced: a price is unknown, or it
            allows no call at all.
    """
    table = price_table(config.prices)
    names = list(dict.fromkeys(member.model for member in members))
    prices = {name: price for name in names if (price := table.price(name)) is not None}
    unknown = [name for name in names if name not in prices]
    if unknown and config.max_cost_usd is not None:
        raise ConfigError(
            f"--max-cost cannot be enforced: the price of {unknown[0]!r} is unknown; give it in a file, --prices FILE, "
            f"with the lines `models:` and `  {unknown[0]}: {{input: USD, output: USD}}` per million tokens"
        )
    priced = [name for name, price in prices.items() if price != FREE]
    if priced and config.max_cost_usd == 0:
        raise ConfigError(f"--max-cost 0 allows no call of {priced[0]!r}, which costs money: raise it")
    return prices


def budget(config: RunConfig) -> Budget:
    """The run's budget."""
    return Budget(max_cost_usd=config.max_cost_usd, max_tokens=config.max_tokens)


def spent_by_earlier_sessions(
    folder: RunFolder, prices: Mapping[str, Price], sessions: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """Use of the run's earlier sessions by budget: an upper bound where a server did not report usage.

    Args:
        folder: the run's folder.
        prices: by model name.
        sessions: the sessions in run.yaml; a killed one has the possible use of its lost calls in `unsettled_usage`.
    """
    spent = budget_use(_recorded(folder) if folder.exists() else {}, prices)
    for session in sessions:
        unsettled = session.get("unsettled") or {}
        spent = {name: amount + float(unsettled.get(name, 0.0)) for name, amount in spent.items()}
    return spent


def _recorded(folder: RunFolder) -> dict[str, UsageTotals]:
    """Recorded use by model."""
    columns = ["model", "prompt_tokens", "completion_tokens", "unconfirmed_tokens_max"]
    turns = read_table(folder, "turns", [*columns, "reused_from"])
    usage = usage_by_model(turns.filter(turns["reused_from"].is_null()).select(columns))
    events = read_table(folder, "events", ["data"], pc.field("kind") == ABANDONED)
    for data in map(decode_json, events["data"].to_pylist()):
        used = UsageTotals(unconfirmed_tokens_max=data.get("tokens_at_most", 0))
        add_usage(usage, {data.get("model", ""): used})
    return usage


def lost(folder: Path, epoch: int) -> dict[str, float]:
    """Possible unrecorded use by dead actors, for an owner that ended in order.

    Args:
        folder: the run's folder.
        epoch: the owner's epoch.

    Returns:
        Use by budget; empty without budgets.
    """
    return {name: amount for name, amount in Ledger(RunFolder(folder), epoch).reserved().items() if amount > _ROUNDING}


def unsettled_usage(folder: Path, epoch: int, spent: Mapping[str, float]) -> dict[str, float]:
    """Possible unrecorded use for an owner that was killed, by budget.

    Args:
        folder: the run's folder.
        epoch: the owner's epoch.
        spent: the recorded use, see `spent_by_earlier_sessions`.
    """
    unsettled = {
        name: at_most - spent.get(name, 0.0) for name, at_most in Ledger(RunFolder(folder), epoch).bound().items()
    }
    return {name: amount for name, amount in unsettled.items() if amount > _ROUNDING}
