"""Execution of a grid, cell by cell within one budget, and its estimated cost."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from moot.deploy.results.text import count
from moot.deploy.runs.dry_run import DryRunPlan, plan
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.resume import used
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session import outcome_if_complete
from moot.deploy.runs.stop_reason import DETAIL_SEPARATOR
from moot.deploy.studies.ablation.prepare import ReadyCell, cells_to_run, without_reuse

_HEADER = ("cell", "cases", "calls", "tokens, at least", "at most about")


def plan_lines(grid: Sequence[ReadyCell]) -> list[str]:
    """Cases, calls and tokens of each cell and in total, as lines of text; reads the cases, calls no model."""
    plans = {each.cell.name: plan(without_reuse(each.prepared, grid)) for each in cells_to_run(grid)}
    rows = [
        (each.cell.name, *((f"as {each.same_as}", "", "", "") if each.same_as else _figures([plans[each.cell.name]])))
        for each in grid
    ]
    table = [_HEADER, *rows, (f"all {len(grid)} cells", *_figures(list(plans.values())))]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        *("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in table),
        *(f"documents {text}" for text in dict.fromkeys(each.documents for each in plans.values()) if text),
        "prompts at 4 characters a token (not Latin: 1), replies at full length; at least: if every debate is short;",
        "without retries and re-asks; a cell that has begun, and replies that are reused, cost less",
        "dry run: no requests, no cost, nothing written",
    ]


def _figures(plans: Sequence[DryRunPlan]) -> tuple[str, str, str, str]:
    least, most = _sum(each.least for each in plans), _sum(each.most for each in plans)
    calls = "unknown" if least is None or most is None else f"{least:,} to {most:,}"
    tokens = (_sum(each.least_tokens for each in plans), _sum(each.most_tokens for each in plans))
    return count(_sum(each.cases for each in plans)), calls, count(tokens[0]), count(tokens[1])


def _sum(values: Iterable[int | None]) -> int | None:
    """Sum; None if a value is unknown."""
    given = list(values)
    known = [value for value in given if value is not None]
    return sum(known) if len(known) == len(given) else None


class CellRun(NamedTuple):
    """Result of a cell.

    Attributes:
        run: outcome of its run; None if the grid's budget was exhausted before.
        stopped_by: exhausted bound of the grid, as text; empty if there is none.
    """

    cell: ReadyCell
    run: Run | None
    stopped_by: str


def run_grid(
    grid: Sequence[ReadyCell], run_cell: Callable[[Prepared], Run], clock: Callable[[], float] = time.monotonic
) -> Iterator[CellRun]:
    """Run the cells with a run of their own, in order, until one is stopped or interrupted.

    `max_tokens`, `max_cost_usd` and `max_minutes` bound the whole grid: a cell gets the remainder of the other cells.
    Tokens and cost are read from their records, so that a resumed grid keeps its budget.

    Args:
        run_cell: function that runs a prepared run.
        clock: monotonic seconds.

    Yields:
        The result of each cell; of a finished one, its recorded outcome.
    """
    started = clock()
    for each in cells_to_run(grid):
        prepared = each.prepared
        if (done := outcome_if_complete(prepared)) is not None:
            yield CellRun(each, done, "")
            continue
        remaining = _remaining_budget(
            prepared.config, [other.prepared for other in grid if other is not each], clock() - started
        )
        if why := _exhausted_bound(prepared.config, remaining):
            yield CellRun(each, None, why)
            return
        config = prepared.config.model_copy(update=remaining._asdict())
        run = run_cell(dataclasses.replace(prepared, config=config))
        stopped = run.status == "stopped"
        yield CellRun(each, run, _grid_reason(prepared.config, run.stopped_by) if stopped else "")
        if stopped or run.status == "interrupted":
            return


class _CellBudget(NamedTuple):
    """Budget of a cell; None is no bound."""

    max_tokens: int | None
    max_cost_usd: float | None
    max_minutes: float | None


def _remaining_budget(config: RunConfig, others: Sequence[Prepared], elapsed_s: float) -> _CellBudget:
    """Remainder of the grid's bounds after the use of the other cells and the elapsed seconds."""
    bounded = config.max_tokens is not None or config.max_cost_usd is not None
    spent = [used(other) for other in others] if bounded else []
    tokens, usd = (math.fsum(each[budget] for each in spent) for budget in ("tokens", "usd"))
    return _CellBudget(
        None if config.max_tokens is None else max(0, math.floor(config.max_tokens - tokens)),
        None if config.max_cost_usd is None else max(0.0, config.max_cost_usd - usd),
        None if config.max_minutes is None else max(0.0, config.max_minutes - elapsed_s / 60.0),
    )


def _exhausted_bound(config: RunConfig, remaining: _CellBudget) -> str:
    """Exhausted bound as text, empty if there is none; a cost bound of 0 permits free models."""
    if remaining.max_tokens == 0:
        return _grid_reason(config, "--max-tokens")
    if remaining.max_cost_usd == 0.0 and config.max_cost_usd:
        return _grid_reason(config, "--max-cost")
    return _grid_reason(config, "--max-minutes") if remaining.max_minutes == 0.0 else ""


def _grid_reason(config: RunConfig, why: str) -> str:
    """Stop reason of a cell; for a bound, with the figure of the grid instead of the cell's remainder."""
    details = "".join(why.partition(DETAIL_SEPARATOR)[1:])
    if why.startswith("--max-tokens"):
        return f"--max-tokens {config.max_tokens} for the whole grid does not allow another call{details}"
    if why.startswith("--max-cost"):
        return f"--max-cost {config.max_cost_usd:g} for the whole grid does not allow another call{details}"
    return f"--max-minutes {config.max_minutes:g} is over" if why.startswith("--max-minutes") else why
