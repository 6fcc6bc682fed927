"""What kappa did in a run, as text, Markdown or JSON."""

from __future__ import annotations

from rich.console import Console

from moot.deploy.reading.report.blocks import Block, Heading, Note, Table
from moot.deploy.reading.report.render import banner, show_report
from moot.deploy.reading.rounds.dial import MEASURES, DialEffect, Slope
from moot.deploy.reading.rounds.over_cases import LEAST_CASES
from moot.deploy.reading.text import number

_CANNOT_TELL = (
    "Whether the models react to the dial cannot be told from this run: its schedule moves kappa with the rounds and "
    "the debates, which change by themselves. A run with --set schedule=random tells (EVINCE), or fixed levels side by "
    "side (moot ablate)."
)
_ONE_LEVEL = (
    "Whether the models react to the dial cannot be told from one level: hold several side by side, as by moot ablate "
    "--set schedule=fixed --over kappa.start=0.9,0.5,0.1."
)


def conclusion(found: DialEffect) -> str:
    """Whether anything follows kappa."""
    if not found.randomised:
        return _ONE_LEVEL if len(found.levels) == 1 else _CANNOT_TELL
    if found.moves is None:
        return f"Whether the models react to the dial is unknown: fewer than {LEAST_CASES} cases can be compared."
    if found.moves:
        moved = {MEASURES[key].partition(",")[0]: slope for key, slope in found.slopes.items() if slope.moves}
        by = "; ".join(f"{name} {_slope(slope)}" for name, slope in moved.items())
        return f"The debates react to kappa, which was drawn at random: {by} from kappa 0 to 1."
    return "No reaction to the dial can be seen: the interval of every slope over kappa includes 0."


def _header(found: DialEffect) -> list[str]:
    return ["", "kappa, to 0.1" if found.binned else "kappa", "mean", "95 % interval", "cases"]


def _rows(found: DialEffect) -> list[list[str]]:
    """By measure: its mean at each level, then its slope."""
    rows = []
    for key in found.levels[0].measured:
        for i, level in enumerate(found.levels):
            at = level.measured[key]
            kappa = number(level.kappa, 2)
            rows.append(
                [MEASURES[key] if i == 0 else "", kappa, number(at.mean), _ends(at.low, at.high), f"{at.cases:,}"]
            )
        if (slope := found.slopes.get(key)) is not None:
            rows.append(["", "slope", number(slope.per_kappa), _ends(slope.low, slope.high), f"{slope.cases:,}"])
    return rows


def _slope(found: Slope) -> str:
    if found.per_kappa is None:
        return number(None)
    sign = "+" if found.per_kappa > 0.0 else ""
    return f"{sign}{number(found.per_kappa)} ({_ends(found.low, found.high)})"


def _ends(low: float | None, high: float | None) -> str:
    return number(None) if low is None or high is None else f"{number(low)} to {number(high)}"


def _head(found: DialEffect) -> str:
    schedule = f", schedule {', '.join(found.schedules)}" if found.schedules else ""
    slopes = " and slopes among equal rounds" if found.slopes else ""
    return f"means by kappa{slopes}, with bootstrap intervals over cases{schedule}"


def show_dial(found: DialEffect, form: str = "text", console: Console | None = None) -> None:
    """Write the effect to the console.

    Raises:
        ConfigError: for an unknown format.
    """
    show_report(found, lambda: _blocks(found), form, console)


def _blocks(found: DialEffect) -> list[Block]:
    head = [*banner(found.simulated), Heading(f"What kappa did: {found.run}", 1), Note(_head(found))]
    return [*head, Table("", _header(found), _rows(found)), Note(conclusion(found))]
