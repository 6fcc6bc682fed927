"""`moot plan`: capacity and cost of a large run, from the record of a small one."""

from __future__ import annotations

import math
import re
from typing import Annotated

import typer

_NUMBER = re.compile(r"-?(\d{1,3}(,\d{3})+|\d+(_\d+)*(\.\d+)?(e\+?\d{1,2})?)", re.ASCII | re.IGNORECASE)


def _count(given: str) -> int:
    """Parse a whole number, also written as `1e6`, `1,000,000` or `1_000_000`.

    >>> [_count(given) for given in ("20", "1e6", "1,000,000", "1_000_000", "2.5e5")]
    [20, 1000000, 1000000, 1000000, 250000]

    Raises:
        typer.BadParameter: not a whole number, such as `1,5`.
    """
    number = float(re.sub("[,_]", "", given)) if _NUMBER.fullmatch(given) else math.nan
    if not number.is_integer():
        raise typer.BadParameter(f"expected a whole number, not {given!r}")
    return int(number)


def plan(
    pilot: Annotated[str, typer.Option("--from", help="Folder or URI of a small run of the same kind, the pilot.")],
    cases: Annotated[
        int, typer.Option(parser=_count, metavar="N", help="Number of cases of the large run, such as 1000000 or 1e6.")
    ],
    limit_rpm: Annotated[int | None, typer.Option(help="Maximum requests per minute per model.")] = None,
    limit_tpm: Annotated[int | None, typer.Option(help="Maximum tokens per minute per model.")] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Maximum concurrent calls per model; adaptive by default.")
    ] = None,
    max_open: Annotated[
        int | None, typer.Option(help="Maximum number of concurrent debates (default: the pilot's).")
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="Number of machines (default: as many as needed).")] = None,
    cores_per_node: Annotated[
        int | None, typer.Option(help="CPU cores per machine (default: those of this machine).")
    ] = None,
    placement: Annotated[str | None, typer.Option(help="actors or packed (default: the pilot's).")] = None,
    cpu_ms_per_call: Annotated[float | None, typer.Option(help="CPU milliseconds per call.")] = None,
    prices: Annotated[str | None, typer.Option(help="A YAML file of prices; overrides the pilot's.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the simulation.")] = 0,
    form: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Plan a large run from the record of a small one: time, cost, machines and the bottleneck."""
    from moot.deploy.studies.planning.plan import plan as planned
    from moot.deploy.studies.planning.show import check_output_form, show_plan

    check_output_form(form)
    run_plan = planned(
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
    show_plan(run_plan, form)
