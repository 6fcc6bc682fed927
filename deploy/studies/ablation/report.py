"""Figures of a grid, and their report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from moot.deploy.results.figures.claim_blocks import claims_notes, mean_seconds
from moot.deploy.results.figures.claims import ALWAYS, VERDICT, ClaimSet, Detector
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.display import DisplayMixin, FrozenModel
from moot.deploy.results.report.render import banner, show_report
from moot.deploy.results.stats import IntervalEstimate, in_percent, without_interval
from moot.deploy.results.text import Interval, count, in_groups, number, p_value, percent
from moot.deploy.studies.ablation.effects import BaselineComparison, CellFigures
from moot.deploy.studies.ablation.main_effects import MainEffect
from moot.deploy.studies.ablation.means import MEASURES, VOTES, CaseMean, MeanComparison

_SHARED = "cells share replies: later cells reuse the first one's replies to identical requests, so costs are shared"

_NO_BRIER = "Brier score: not applicable to shares of votes, which are not stated probabilities"

_DEBATES_HEADER = ("mean [95 %]", "n", "change [95 %]", "p", "p, BH", "pairs")

_ANSWERS = 3
"""Maximum number of answers listed per cell, if no accuracy is known."""


class Ablation(DisplayMixin, FrozenModel):
    """Figures of a grid.

    Attributes:
        folder: parent of the cells' folders.
        baseline: name of the baseline cell, or of the cell whose run it shares.
        cells: the started cells, in the order of the grid.
        not_begun: names of the other cells.
        main_effects: by key and value; empty for a single key, or if a cell has not started.
        shared_replies: whether later cells reuse the replies of the first one.
        warnings: caveats of the figures.
    """

    schema_version: int
    folder: str
    task: str | None
    simulated: bool
    baseline: str
    cells: list[CellFigures]
    not_begun: list[str]
    main_effects: list[MainEffect]
    shared_replies: bool
    warnings: list[str]

    def display_name(self) -> str:
        """See `DisplayMixin`."""
        return f"{self.folder}: {len(self.cells):,} cells"

    def report_blocks(self) -> list[Block]:
        """See `DisplayMixin`."""
        return ablation_blocks(self)


def show_ablation(ablation: Ablation, form: str = "text", console: Console | None = None) -> None:
    """Print the figures of a grid.

    Args:
        ablation: figures of the grid.
        form: text, json or md.
        console: output; None for the standard output.
    """
    show_report(ablation, lambda: ablation_blocks(ablation), form, console)


def ablation_blocks(ablation: Ablation) -> list[Block]:
    """Report blocks of a grid: caveats, figures by cell, effects of each key."""
    remarks = [*banner(ablation.simulated), *(Note(remark, "warning") for remark in _caveats(ablation))]
    return [Heading("Ablation", 1), *remarks, *_tables(ablation), *map(Note, _notes(ablation))]


def _caveats(ablation: Ablation) -> list[str]:
    shared = [_SHARED] if ablation.shared_replies else []
    left = [f"not started: {', '.join(ablation.not_begun)}"] if ablation.not_begun else []
    return shared + left + ablation.warnings


def _tables(ablation: Ablation) -> list[Table]:
    blocks = [_cells(ablation), *cross_table(ablation)]
    compared = [each for each in ablation.cells if each.vs_baseline is not None]
    if compared:
        blocks.append(_accuracy(ablation, compared))
    if any(each.brier for each in ablation.cells):
        blocks += _brier(ablation)
    blocks += _debates(ablation.cells, _keys(ablation), ablation.baseline)
    return [*blocks, _main_effects(ablation)] if ablation.main_effects else blocks


def _notes(ablation: Ablation) -> list[str]:
    """Notes under the tables: claims left out, on one line if all cells have the same numbers."""
    cells = _own(ablation)
    notes = [_NO_BRIER] if any(VOTES in each.brier_left_out for each in cells) else []
    trained_on = [(each.trained_on, each.group_trained_on) for each in cells]
    if len(cells) > 1 and len(set(trained_on)) == 1:
        return notes + claims_notes(["every cell"], trained_on[:1])
    return notes + claims_notes([each.cell for each in cells], trained_on)


def _own(ablation: Ablation) -> list[CellFigures]:
    """Cells with a run of their own."""
    return [each for each in ablation.cells if each.same_as is None]


def _keys(ablation: Ablation) -> tuple[str, ...]:
    """Titles of the key columns: the last part of each key, if unique."""
    keys = list(ablation.cells[0].values)
    last = [key.rpartition(".")[2] for key in keys]
    return tuple(end if last.count(end) == 1 else key for key, end in zip(keys, last, strict=True))


def _cells(ablation: Ablation) -> Table:
    cells = _own(ablation)
    columns = claim_columns(cells) | {
        "accuracy, %": [_share(each.accuracy, each.accuracy_interval) for each in cells],
        "n": [count(each.scored) for each in cells],
        "coverage, %": [_share(each.coverage) for each in cells],
        "failed": [count(each.failed) for each in cells],
        "abstained": [count(each.abstained) for each in cells],
        "rounds": [number(each.rounds_mean, 2) for each in cells],
        "tokens /case": [count(each.tokens_per_case) for each in cells],
        "USD": ["unknown" if each.cost_usd is None else f"{each.cost_usd:.4f}" for each in cells],
    }
    if not any(each.failed for each in cells):
        del columns["failed"]
    if not any(each.abstained for each in cells):
        del columns["abstained"]
    if all(each.cost_usd == 0.0 for each in cells):
        del columns["USD"]
    if all(each.accuracy is None for each in cells):
        columns["answers"] = [_answers(each.answers) for each in cells]
    title = (
        "accuracy with Wilson's 95 % interval, over the n cases with a gold label (no answer counts as wrong)"
        + trivial_baseline(cells)
    )
    figures = {each.cell: row for each, row in zip(cells, zip(*columns.values(), strict=True), strict=True)}
    rows = [
        (*each.values.values(), *(figures.get(each.cell) or (f"as {each.same_as}", *[""] * (len(columns) - 1))))
        for each in ablation.cells
    ]
    return Table(title, (*_keys(ablation), *columns), rows)


def _answers(counts: Mapping[str, int]) -> str:
    """Most frequent answers, and the number of others."""
    named = list(counts.items())[:_ANSWERS]
    others = sum(counts.values()) - sum(n for _, n in named)
    parts = [f"{answer} {n:,}" for answer, n in named]
    return ", ".join([*parts, f"others {others:,}"] if others else parts) or "-"


def _share(value: float | None, interval: Interval | None = None) -> str:
    return percent(value, interval).replace(" %", "")


def _accuracy(ablation: Ablation, compared: Sequence[CellFigures]) -> Table:
    title = (
        f"accuracy against {ablation.baseline}, on cases that both scored ([95 %], McNemar's p; BH: adjusted for "
        f"{len(compared)} {'comparison' if len(compared) == 1 else 'comparisons'}; +b: only this cell right)"
    )
    header = (*_keys(ablation), "points", "p", "p, BH", "+b/-c", "pairs", "left out")
    rows = [(*each.values.values(), *_against(each.vs_baseline)) for each in compared if each.vs_baseline]
    return _without_empty_end(Table(title, header, rows))


def _without_empty_end(block: Table) -> Table:
    """Table without its last column, if that is empty."""
    if any(row[-1] != "-" for row in block.rows):
        return block
    return Table(block.title, block.header[:-1], [row[:-1] for row in block.rows])


def _left_out(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {why}" for why, n in reasons.items()) or "-"


def _against(comparison: BaselineComparison) -> tuple[str, ...]:
    test = comparison.accuracy
    left_out = _left_out(comparison.left_out)
    if test.difference is None:
        return ("unknown", "unknown", "unknown", "-", "0", left_out)
    discordant = f"+{test.only_first:,}/-{test.only_second:,}"
    points, n = _points(test.difference, test.interval), in_groups(test.n, test.groups)
    return (points, p_value(test.p_value), p_value(comparison.p_adjusted), discordant, n, left_out)


def _brier(ablation: Ablation) -> list[Table]:
    """Means, and changes from the baseline, as two tables, because one would be too wide."""
    keys = _keys(ablation)
    title = "Brier score of the verdicts' distributions, 0 (best) to 2: mean with its 95 % interval"
    means = [(*e.values.values(), *_brier_mean(e), _left_out(e.brier_left_out)) for e in _own(ablation)]
    blocks = [_without_empty_end(Table(title, (*keys, "Brier", "n", "left out"), means))]
    rows = [
        (*each.values.values(), *_brier_change(each.brier.vs_baseline))
        for each in ablation.cells
        if each.brier and each.brier.vs_baseline
    ]
    title = f"change of the Brier score from {ablation.baseline} by case ([95 %], t test; BH as above; delta: Cliff's)"
    return [*blocks, Table(title, (*keys, "change", "p", "p, BH", "delta", "pairs"), rows)] if rows else blocks


def _brier_mean(cell: CellFigures) -> tuple[str, str]:
    brier = cell.brier
    if brier is None:
        return ("not applicable" if VOTES in cell.brier_left_out else "unknown", "0")
    ends = f" [{brier.interval[0]:z.3f}, {brier.interval[1]:z.3f}]" if brier.interval else ""
    return (f"{brier.mean:z.3f}{ends}", count(brier.n))


def _brier_change(against: MeanComparison) -> tuple[str, ...]:
    return (
        _with_ends(f"{against.difference:+z.3f}", against.interval, "+z.3f"),
        p_value(against.p_value),
        p_value(against.p_adjusted),
        "unknown" if against.cliffs_delta is None else f"{against.cliffs_delta:+z.2f}",
        in_groups(against.n, against.groups),
    )


def _main_effects(ablation: Ablation) -> Table:
    n = ablation.main_effects[0].n
    title = (
        f"each value, the mean over the others, on the {n:,} cases that every cell scored (points: against the "
        "baseline's value, with the 95 % interval)"
    )
    rows = [
        (
            f"{each.key}={each.value}",
            _share(each.accuracy),
            _points(each.difference, each.interval),
            count(each.tokens_per_case),
        )
        for each in ablation.main_effects
    ]
    return Table(title, ("value", "accuracy, %", "points", "tokens /case"), rows)


def _points(difference: float | None, interval: Interval | None) -> str:
    if difference is None:
        return "-"
    ends = f" [{100 * interval[0]:+z.1f}, {100 * interval[1]:+z.1f}]" if interval else ""
    return f"{100 * difference:+z.1f}{ends}"


def _debates(cells: Sequence[CellFigures], keys: tuple[str, ...], baseline: str) -> list[Table]:
    """Table for each measure in the rounds of any cell, without cells that share the run of another one."""
    own = [each for each in cells if each.same_as is None]
    measured = [key for key in MEASURES if any(key in each.debates for each in own)]
    return [
        Table(
            f"{MEASURES[key]}: mean, change from {baseline} by case (t test; BH over all tables)",
            (*keys, *_DEBATES_HEADER),
            [(*each.values.values(), *_debate_row(each.debates.get(key))) for each in own],
        )
        for key in measured
    ]


def _debate_row(measured: CaseMean | None) -> tuple[str, ...]:
    if measured is None:
        return ("unknown", "0", *_change(None))
    return (
        _with_ends(f"{measured.mean:z.3g}", measured.interval, "z.3g"),
        count(measured.n),
        *_change(measured.vs_baseline),
    )


def _change(comparison: MeanComparison | None) -> tuple[str, ...]:
    if comparison is None:
        return ("-", "-", "-", "-")
    change = _with_ends(f"{comparison.difference:+z.3g}", comparison.interval, "+z.3g")
    return (
        change,
        p_value(comparison.p_value),
        p_value(comparison.p_adjusted),
        in_groups(comparison.n, comparison.groups),
    )


def _with_ends(mean: str, interval: Interval | None, form: str) -> str:
    return f"{mean} [{interval[0]:{form}}, {interval[1]:{form}}]" if interval else mean


def next_cells(ablation: Ablation) -> list[tuple[str, str]]:
    """Cells to inspect first, with the reason: the baseline and the most accurate other cell, if they have started.

    Of several equally accurate cells the first is named, with their number.
    """
    baseline = next((each for each in _own(ablation) if each.cell == ablation.baseline), None)
    cells = [] if baseline is None else [(baseline.cell, "the baseline")]
    others = [each for each in _own(ablation) if each.cell != ablation.baseline and each.accuracy is not None]
    if not others:
        return cells
    most = max(each.accuracy for each in others if each.accuracy is not None)
    best = [each for each in others if each.accuracy == most]
    why = "the most accurate of the others" if len(best) == 1 else f"one of the {len(best)} most accurate of the others"
    same = ", as accurate as the baseline" if baseline is not None and baseline.accuracy == most else ""
    return [*cells, (best[0].cell, why + same)]


_F1, _RECALL = "macro F1, %", "recall, %"


def claim_columns(cells: Sequence[CellFigures]) -> dict[str, list[str]]:
    """Columns by heading for the cells of a grid over claims; empty for a grid over another task."""
    if not any(each.claims for each in cells):
        return {}
    return {
        _head(cells): [in_percent(_figure(each.claims, VERDICT)) for each in cells],
        "s /case": [mean_seconds(each.seconds) for each in cells],
    }


def _head(cells: Sequence[CellFigures]) -> str:
    """Heading: recall if only one class occurs, because the mean of two F1 is then meaningless; else macro-F1."""
    return _RECALL if any(each.claims and each.claims.only for each in cells) else _F1


def _figure(claims: ClaimSet | None, by: str) -> IntervalEstimate:
    detector: Detector | None = claims.by(by) if claims is not None else None
    if detector is None or claims is None:
        return IntervalEstimate()
    return detector.accuracy if claims.only else detector.macro_f1


def trivial_baseline(cells: Sequence[CellFigures]) -> str:
    """Figures of a constant answer on the claims of the first cell, as the end of a title; empty without claims."""
    claims = next((each.claims for each in cells if each.claims), None)
    if claims is None:
        return ""
    baselines = ", ".join(f"{name} {without_interval(_figure(claims, name))}" for name in ALWAYS.values())
    figure = "recall" if claims.only else "macro F1"
    return f"; {figure} over the claims with a verdict, one left open is wrong ({baselines}; [95 %, groups resampled])"


def cross_table(ablation: Ablation) -> list[Table]:
    """Cross table of two keys, with figure and seconds per case of each cell; empty unless the grid has two keys."""
    keys = list(ablation.cells[0].values)
    if len(keys) != 2 or not any(each.claims for each in ablation.cells):
        return []
    down, across = (list(dict.fromkeys(each.values[key] for each in ablation.cells)) for key in keys)
    by_values = {tuple(each.values.values()): each for each in ablation.cells}
    rows = [(one, *(_cross_cell(by_values.get((one, other))) for other in across)) for one in down]
    figure = _head(ablation.cells)
    title = f"{figure}, and seconds of a case in brackets: {keys[0]} down, {keys[1]} across"
    return [Table(title, (keys[0].rpartition(".")[2], *across), rows)]


def _cross_cell(cell: CellFigures | None) -> str:
    if cell is None:
        return "not started"
    return f"{without_interval(_figure(cell.claims, VERDICT))} ({mean_seconds(cell.seconds)})"
