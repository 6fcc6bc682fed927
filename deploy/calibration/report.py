"""Shows a calibration: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from moot.deploy.calibration.calibrate import Calibration, HeldOut
from moot.deploy.calibration.epsilon import EpsilonChoice, EpsilonPoint
from moot.deploy.calibration.grid import GridPoint, best_by_skip_rate
from moot.deploy.reading.summaries.summary_rows import paired_words
from moot.deploy.reading.text import (
    Interval,
    count,
    emit,
    markdown_block,
    markdown_inline,
    markdown_table,
    number,
    percent,
    safe_json,
    times,
    visible_line,
)

_ROWS = 12
_SWEEP = "validation cases: the most accurate setting at each skip rate"
_STOPPING = "where debates stop: when D moves by less than epsilon"
_SIGNALS = {"d": "D", "m": "M", "p": "p", "c": "c"}
_GRID_HEADER = ("tau_d", "tau_m", "tau_p", "skipped", "accuracy", "on skipped", "cost / debate", "cost / single")
_HELD_HEADER = ("held-out cases", "skipped", "accuracy", "on skipped", "cost / debate", "against always debating")
_STOPPING_HEADER = ("epsilon", "cases", "rounds", "accuracy of the vote", "cost / as run", "against the run's")
_PREDICTOR_HEADER = ("signal", "read as", "AUROC", "n", "errors")


def show_calibration(found: Calibration, form: str = "text", console: Console | None = None) -> None:
    """Write a calibration to the console."""
    emit(
        form,
        text=lambda: calibration_text(found),
        json=lambda: safe_json(found),
        md=lambda: calibration_markdown(found),
        console=console,
    )


def _tau(value: float | None) -> str:
    return "off" if value is None else number(value, 4)


def _grid_cells(point: GridPoint) -> tuple[str, ...]:
    return (
        *map(_tau, (point.tau_d, point.tau_m, point.tau_p)),
        percent(point.skip_rate),
        percent(point.accuracy),
        percent(point.accuracy_skipped) if point.n_skipped else "-",
        times(point.cost_vs_debate),
        times(point.cost_vs_single),
    )


def _held_cells(name: str, held: HeldOut) -> tuple[str, ...]:
    point = held.point
    skipped = percent(point.accuracy_skipped, held.accuracy_skipped_interval, point.n_skipped)
    return (
        name,
        percent(point.skip_rate),
        percent(point.accuracy, held.accuracy_interval),
        skipped if point.n_skipped else "-",
        times(point.cost_vs_debate),
        paired_words(held.vs_debate),
    )


def _held_rows(found: Calibration) -> list[tuple[str, ...]]:
    debate = percent(found.debate_accuracy.value, found.debate_accuracy.interval)
    never = percent(found.skip_accuracy.value, found.skip_accuracy.interval)
    own = [] if found.as_run is None else [_held_cells("the run's own thresholds", found.as_run)]
    return [
        _held_cells("the chosen thresholds", found.held_out),
        *own,
        ("always debating", "0.0 %", debate, "-", "1.00x", "-"),
        ("never debating", "100.0 %", never, never, "-", "-"),
    ]


def _predictor_rows(found: Calibration) -> list[tuple[str, ...]]:
    return [
        (_SIGNALS[each.name], each.direction, number(each.auroc), str(each.n), str(each.errors))
        for each in found.predictors
    ]


def _stopping_rows(found: EpsilonChoice) -> list[tuple[str, ...]]:
    def cells(point: EpsilonPoint, side: str, interval: Interval | None, against: str) -> tuple[str, ...]:
        rounds, accuracy = number(point.rounds, 2), percent(point.accuracy, interval)
        return (number(point.epsilon, 4), side, rounds, accuracy, times(point.cost_vs_run), against)

    return [
        *(cells(point, str(found.n_validation), None, "-") for point in found.grid),
        cells(found.held_out, f"{found.n_held_out} held-out", found.held_out_interval, paired_words(found.vs_run)),
        cells(found.as_run, f"{found.n_held_out} held-out", found.as_run_interval, "-"),
    ]


def _stopping_rule(found: EpsilonChoice) -> str:
    smaller = (
        " What a smaller one than the run's does was not seen: for that, make the run with --set debate.epsilon=0."
        if found.run_epsilon
        else ""
    )
    return (
        f"Chosen: epsilon {number(found.chosen.epsilon, 4)}, the cheapest whose vote on the validation cases is within "
        f"the same tolerance of the run's ({number(found.run_epsilon, 4)}). It was found by itself, over the debates "
        "that the chosen thresholds skip, too: the two were not tried together, and each may give up the tolerance. To "
        f"use it: --set debate.epsilon={found.chosen.epsilon:g}.{smaller}"
    )


def _shown_points(found: Calibration) -> list[GridPoint]:
    """The best point of each skip rate, thinned to a screenful; the ends and the chosen point stay."""
    points = [point for point in best_by_skip_rate(found.grid) if point.n_skipped != found.chosen.n_skipped]
    step = -(-len(points) // _ROWS) or 1
    kept = [point for i, point in enumerate(points) if i % step == 0 or point == points[-1]]
    return sorted([*kept, found.chosen], key=lambda each: each.skip_rate)


def left_out_words(left_out: Mapping[str, int]) -> str:
    """What was left out, by reason, for the end of a sentence; empty when it was nothing.

    >>> left_out_words({"cannot be scored": 2, "failed": 1})
    '; left out: 2 cannot be scored, 1 failed'
    """
    return f"; left out: {', '.join(f'{n} {why}' for why, n in left_out.items())}" if left_out else ""


def _head(found: Calibration) -> str:
    return (
        f"{found.n_validation} validation and {found.n_held_out} held-out cases of {found.run} (seed {found.seed}"
        f"{left_out_words(found.left_out)}), encoder {found.encoder}"
    )


def _rule(found: Calibration) -> str:
    return (
        f"Chosen: the cheapest of {count(len(found.grid))} settings whose accuracy on the validation cases is at most "
        f"{100 * found.tolerance:g} points below always debating ({percent(found.debate_accuracy_validation)})."
    )


def calibration_text(found: Calibration) -> RenderableType:
    """The calibration for a terminal."""
    parts: list[RenderableType] = [Text(warning, style="bold yellow") for warning in found.warnings]
    parts += [
        Text(visible_line(_head(found))),
        table(
            "validation cases: the most accurate setting at each skip rate",
            _GRID_HEADER,
            [_grid_cells(p) for p in _shown_points(found)],
        ),
        Text(_rule(found)),
        table("", _GRID_HEADER, [_grid_cells(found.chosen)]),
        table("", _HELD_HEADER, _held_rows(found)),
        table("what tells that the skipped answer is wrong", _PREDICTOR_HEADER, _predictor_rows(found)),
        *_stopping_text(found.stopping),
        Text("to use the chosen thresholds:"),
        Text(visible_line(found.set_line), style="bold", no_wrap=True, overflow="ignore"),
    ]
    return Group(*parts)


def _stopping_text(found: EpsilonChoice | None) -> list[RenderableType]:
    if found is None:
        return []
    return [table(_STOPPING, _STOPPING_HEADER, _stopping_rows(found)), Text(_stopping_rule(found))]


def _stopping_markdown(found: EpsilonChoice | None) -> list[str]:
    if found is None:
        return []
    shown = markdown_table(_STOPPING_HEADER, _stopping_rows(found))
    return [f"## {_STOPPING[0].upper()}{_STOPPING[1:]}", shown, markdown_inline(_stopping_rule(found))]


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table for a terminal; its cells hold no control characters."""
    made = Table(*header, title=Text(title) if title else None, title_justify="left")
    for row in rows:
        made.add_row(*(Text(visible_line(cell)) for cell in row))
    return made


def calibration_markdown(found: Calibration) -> str:
    """The calibration as Markdown."""
    blocks = ["# Calibration of the gate"]
    blocks += [f"**{markdown_inline(warning)}**" for warning in found.warnings]
    blocks += [
        markdown_inline(_head(found)),
        "## The most accurate setting at each skip rate (validation cases)",
        markdown_table(_GRID_HEADER, [_grid_cells(p) for p in _shown_points(found)]),
        markdown_inline(_rule(found)),
        markdown_table(_GRID_HEADER, [_grid_cells(found.chosen)]),
        "## Held-out cases",
        markdown_table(_HELD_HEADER, _held_rows(found)),
        "## What tells that the skipped answer is wrong",
        markdown_table(_PREDICTOR_HEADER, _predictor_rows(found)),
        *_stopping_markdown(found.stopping),
        "To use the chosen thresholds:",
        markdown_block(found.set_line),
    ]
    return "\n\n".join(blocks) + "\n"
