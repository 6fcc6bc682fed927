"""`moot plan`: what a large run would take, going by the record of a small one."""

from __future__ import annotations

import math
import re
from typing import Annotated

import typer

_NUMBER = re.compile(r"-?(\d{1,3}(,\d{3})+|\d+(_\d+)*(\.\d+)?(e\+?\d{1,2})?)", re.ASCII | re.IGNORECASE)


def _count(given: str) -> int:
    """A whole number as people write a large one.

    >>> [_count(given) for given in ("20", "1e6", "1,000,000", "1_000_000", "2.5e5")]
    [20, 1000000, 1000000, 1000000, 250000]

    Raises:
        typer.BadParameter: it is none, such as `1,5`.
    """
    number = float(re.sub("[,_]", "", given)) if _NUMBER.fullmatch(given) else math.nan
    if not number.is_integer():
        raise typer.BadParameter(f"expected a whole number, not {given!r}")
    return int(number)


def plan(
    pilot: Annotated[str, typer.Option("--from", help="The folder of a small run of the same kind, or its URI.")],
    cases: Annotated[
        int, typer.Option(parser=_count, metavar="N", help="How many cases the large run has, as 1000000 or 1e6.")
    ],
    limit_rpm: Annotated[int | None, typer.Option(help="Requests per minute, of each model.")] = None,
    limit_tpm: Annotated[int | None, typer.Option(help="Tokens per minute, likewise.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Calls under way, likewise; by default it adapts.")] = None,
    max_open: Annotated[int | None, typer.Option(help="Most debates open at once (default: the pilot's).")] = None,
    nodes: Annotated[int | None, typer.Option(help="Machines (default: as many cores as it takes).")] = None,
    cores_per_node: Annotated[int | None, typer.Option(help="Of each (default: as many as here).")] = None,
    placement: Annotated[str | None, typer.Option(help="actors or packed (default: the pilot's).")] = None,
    cpu_ms_per_call: Annotated[float | None, typer.Option(help="Processor milliseconds of a call.")] = None,
    prices: Annotated[str | None, typer.Option(help="A YAML file of prices, over the pilot's.")] = None,
    seed: Annotated[int, typer.Option(help="Of the simulation's draws.")] = 0,
    form: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Plan a large run from the record of a small one: time, cost, machines, and what holds it back."""
    from moot.deploy.studies.planning.plan import plan as planned
    from moot.deploy.studies.planning.show import check_output_form, show_plan

    check_output_form(form)
    found = planned(
        pilot,
        prices=prices,
        cases=cases,
        limit_rpm=limit_rpm,
        limit_tpm=limit_tpm,
        concurrency=concurrency,
        max_open=max_open,
        nodes=nodes,
        cores_per_node=cores_per_node,
        placement=placement,
        cpu_ms_per_call=cpu_ms_per_call,
        seed=seed,
    )
    show_plan(found, form)
