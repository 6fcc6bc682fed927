"""A run's debates round by round, as text, Markdown or JSON."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from moot.deploy.reading.rounds.dynamics import Change, Dynamics
from moot.deploy.reading.rounds.measures import BY_KEY, Measure
from moot.deploy.reading.rounds.over_cases import Measured
from moot.deploy.reading.simulated import SIMULATED
from moot.deploy.reading.text import emit, markdown_inline, markdown_table, number, safe_json

_HEADER = ["", "round", "mean", "95 % interval", "cases", "change"]
_NOTE = (
    "Means over the debates that held a round, with bootstrap intervals over cases: later rounds are of those that had "
    "not ended. The change from first to last is of each debate's own rounds; in per cent of the mean at first."
)


def _rows(found: Dynamics) -> list[list[str]]:
    """By measure: its mean in each round, then its change from first to last."""
    rows = []
    for key in found.rounds[0].measured:
        measure = BY_KEY[key]
        for place, each in enumerate(found.rounds):
            name = measure.heading if place == 0 else ""
            rows.append([name, str(each.round), *_measured(measure, each.measured[key]), ""])
        if (change := found.changes.get(key)) is not None:
            rows.append(["", "first to last", *_measured(measure, change.by_case, signed=True), _percent(change)])
    return rows


def _measured(measure: Measure, found: Measured, *, signed: bool = False) -> list[str]:
    mean, low, high = (
        None if value is None else measure.times * value for value in (found.mean, found.low, found.high)
    )
    sign = "+" if signed and mean is not None and mean > 0.0 else ""
    unknown = low is None or high is None
    ends = number(None) if unknown else f"{number(low, measure.digits)} to {number(high, measure.digits)}"
    return [f"{sign}{number(mean, measure.digits)}", ends, f"{found.cases:,}"]


def _percent(change: Change) -> str:
    return "" if change.percent is None else f"{change.percent:+.0f} %"


def dynamics_text(found: Dynamics) -> RenderableType:
    """The rounds for a terminal."""
    parts: list[RenderableType] = [Text(SIMULATED, style="bold yellow")] if found.simulated else []
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in _HEADER:
        table.add_column(head, vertical="bottom")
    for row in _rows(found):
        table.add_row(*row)
    return Group(*parts, Text(_NOTE), Text(), table)


def dynamics_markdown(found: Dynamics) -> str:
    """The rounds as Markdown."""
    blocks = [f"# Round by round: {markdown_inline(found.run)}"]
    if found.simulated:
        blocks.append(f"**{SIMULATED}**")
    return "\n\n".join([*blocks, _NOTE, markdown_table(_HEADER, _rows(found))]) + "\n"


def show_dynamics(found: Dynamics, form: str = "text", console: Console | None = None) -> None:
    """Write the rounds to the console.

    Raises:
        ConfigError: for an unknown format.
    """
    emit(
        form,
        text=lambda: dynamics_text(found),
        json=lambda: safe_json(found),
        md=lambda: dynamics_markdown(found),
        console=console,
    )
