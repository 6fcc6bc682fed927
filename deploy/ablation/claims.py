"""A grid over claims in words: each cell's F1 and seconds, and two keys crossed."""

from __future__ import annotations

from collections.abc import Sequence

from moot.deploy.ablation.effects import Ablation, CellFigures
from moot.deploy.reading.detection.detection import Seconds
from moot.deploy.reading.detection.estimates import Estimate, in_percent, in_seconds, without_interval
from moot.deploy.reading.detection.figures import ALWAYS, VERDICT, ClaimSet, Detector
from moot.deploy.reading.report.blocks import Table

_F1, _RECALL = "macro F1, %", "recall, %"


def claim_columns(cells: Sequence[CellFigures]) -> dict[str, list[str]]:
    """By head, a column for the cells of a grid over claims; nothing for a grid over anything else."""
    if not any(each.claims for each in cells):
        return {}
    return {
        _head(cells): [in_percent(_figure(each.claims, VERDICT)) for each in cells],
        "s /case": [_seconds(each.seconds) for each in cells],
    }


def _head(cells: Sequence[CellFigures]) -> str:
    """Where only one class occurs, a mean of two F1 says nothing."""
    return _RECALL if any(each.claims and each.claims.only for each in cells) else _F1


def _figure(claims: ClaimSet | None, by: str) -> Estimate:
    found: Detector | None = claims.by(by) if claims is not None else None
    if found is None or claims is None:
        return Estimate()
    return found.accuracy if claims.only else found.macro_f1


def _seconds(found: Seconds | None) -> str:
    return "unknown" if found is None else in_seconds(found.mean)


def trivial(cells: Sequence[CellFigures]) -> str:
    """What always saying one label gives on the first cell's claims, to end a title with; empty without claims."""
    claims = next((each.claims for each in cells if each.claims), None)
    if claims is None:
        return ""
    said = ", ".join(f"{name} {without_interval(_figure(claims, name))}" for name in ALWAYS.values())
    figure = "recall" if claims.only else "macro F1"
    return f"; {figure} over the claims with a verdict, one left open is wrong ({said}; [95 %, groups drawn anew])"


def crossed(found: Ablation) -> list[Table]:
    """Two keys crossed, the figure and the seconds of a case in each place; none unless it is a grid of two keys."""
    keys = list(found.cells[0].values)
    if len(keys) != 2 or not any(each.claims for each in found.cells):
        return []
    down, across = (list(dict.fromkeys(each.values[key] for each in found.cells)) for key in keys)
    places = {tuple(each.values.values()): each for each in found.cells}
    rows = [(one, *(_place(places.get((one, other))) for other in across)) for one in down]
    figure = _head(found.cells)
    title = f"{figure}, and seconds of a case in brackets: {keys[0]} down, {keys[1]} across"
    return [Table(title, (keys[0].rpartition(".")[2], *across), rows)]


def _place(cell: CellFigures | None) -> str:
    if cell is None:
        return "not begun"
    return f"{without_interval(_figure(cell.claims, VERDICT))} ({_seconds(cell.seconds)})"
