"""What bounds a run: rates and concurrency by endpoint, prices, budgets, and what was used of them before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from moot.actors.household import endpoint_of
from moot.actors.limits.ledger import read_reserved
from moot.actors.limits.settings import Budget, EndpointLimits
from moot.actors.models.prices import Price, price_table
from moot.actors.models.resolve import canonical_model
from moot.actors.record.folder import RunFolder
from moot.actors.record.tables import read_table
from moot.actors.roles import RoleBinding
from moot.deploy.running.config import RunConfig
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.messages import Usage

_FLAGS = ("requests_per_min", "tokens_per_min", "concurrency")


def endpoint_limits(config: RunConfig, members: Iterable[RoleBinding]) -> dict[str, EndpointLimits]:
    """The bounds of every endpoint of the run: what `limits` says of its model, else what holds for all.

    Raises:
        ConfigError: `limits` names a model that the run does not use.
    """
    members = list(members)
    names = {member.model for member in members}
    own_limits = {canonical_model(name): limits for name, limits in config.limits.items()}
    for name in own_limits:
        if name not in names:
            raise unknown_name("model in `limits`", name, names)
    for_all = {flag: getattr(config, flag) for flag in _FLAGS}
    found = {}
    for member in members:
        own = own_limits.get(member.model, EndpointLimits()).model_dump(exclude_none=True)
        limits = EndpointLimits(**{**for_all, **own})
        if limits != EndpointLimits():
            found[endpoint_of(member)] = limits
    return found


def known_prices(config: RunConfig, members: Iterable[RoleBinding]) -> dict[str, Price]:
    """Prices by model name, of the models whose price is known.

    Raises:
        ConfigError: the file of prices is wrong, or a bound on money cannot be kept because a price is unknown.
    """
    table = price_table(config.prices)
    names = list(dict.fromkeys(member.model for member in members))
    prices = {name: price for name in names if (price := table.price(name)) is not None}
    unknown = [name for name in names if name not in prices]
    if unknown and config.max_cost_usd is not None:
        raise ConfigError(
            f"--max-cost cannot be kept: the price of {unknown[0]!r} is unknown; give it in a file, --prices FILE, "
            f"with the lines `models:` and `  {unknown[0]}: {{input: USD, output: USD}}` per million tokens"
        )
    return prices


def budget(config: RunConfig) -> Budget:
    """The run's budget."""
    return Budget(max_cost_usd=config.max_cost_usd, max_tokens=config.max_tokens)


def spent_before(
    folder: RunFolder, prices: Mapping[str, Price], sessions: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """What the run's earlier sessions have used, by budget: an upper bound where a server did not say.

    Args:
        folder: the run's folder.
        prices: by model name.
        sessions: as run.yaml lists them; a killed one says in `unsettled` what its calls under way had reserved.
    """
    tokens = usd = 0.0
    columns = ["model", "prompt_tokens", "completion_tokens", "unconfirmed_tokens_max", "reused_from"]
    for row in read_table(folder, "turns", columns).to_pylist() if folder.exists() else ():
        if row["reused_from"] is not None:
            continue
        price = prices.get(row["model"])
        usage = Usage(row["prompt_tokens"] or 0, row["completion_tokens"] or 0)
        unconfirmed = row["unconfirmed_tokens_max"] or 0
        tokens += (usage.prompt_tokens or 0) + (usage.completion_tokens or 0) + unconfirmed
        if price is not None:
            usd += (price.cost_usd(usage) or 0.0) + unconfirmed * max(price.input, price.output) / 1e6
    for session in sessions:
        unsettled = session.get("unsettled") or {}
        tokens += float(unsettled.get("tokens", 0.0))
        usd += float(unsettled.get("usd", 0.0))
    return {"tokens": tokens, "usd": usd}


def unsettled(folder: Path, epoch: int) -> dict[str, float]:
    """What the calls of the owner `epoch` had reserved when it was killed; empty without budgets."""
    return {name: amount for name, amount in read_reserved(folder, epoch).items() if amount > 0.0}
