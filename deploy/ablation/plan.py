"""What a grid would cost, before anything is paid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moot.deploy.ablation.prepare import ReadyCell, cells_to_hold, on_its_own
from moot.deploy.reading.text import count
from moot.deploy.running.dry_run import Plan, plan

_HEADER = ("cell", "cases", "calls", "tokens, at least", "at most about")


def plan_lines(grid: Sequence[ReadyCell]) -> list[str]:
    """Cases, calls and tokens of each cell and in total, as lines of text; reads the cases, asks nobody."""
    plans = {each.cell.name: plan(on_its_own(each.prepared, grid)) for each in cells_to_hold(grid)}
    rows = [
        (each.cell.name, *((f"as {each.same_as}", "", "", "") if each.same_as else _figures([plans[each.cell.name]])))
        for each in grid
    ]
    table = [_HEADER, *rows, (f"all {len(grid)} cells", *_figures(list(plans.values())))]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        *("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in table),
        *(f"documents {said}" for said in dict.fromkeys(each.documents for each in plans.values()) if said),
        "prompts at 4 characters a token (not Latin: 1), replies at full length; at least: if every debate is short;",
        "without retries and re-asks; a cell that has begun, and replies that are reused, cost less",
        "dry run: nothing was asked, paid or written",
    ]


def _figures(plans: Sequence[Plan]) -> tuple[str, str, str, str]:
    least, most = _sum(each.least for each in plans), _sum(each.most for each in plans)
    calls = "unknown" if least is None or most is None else f"{least:,} to {most:,}"
    tokens = (_sum(each.least_tokens for each in plans), _sum(each.most_tokens for each in plans))
    return count(_sum(each.cases for each in plans)), calls, count(tokens[0]), count(tokens[1])


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum; None when a part is unknown."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None
