"""Shows a grid's figures: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from moot.deploy.ablation.brier import VOTES, BrierAgainst
from moot.deploy.ablation.claims import claim_columns, crossed, trivial
from moot.deploy.ablation.debates_show import debate_blocks
from moot.deploy.ablation.effects import Ablation, Against, CellFigures
from moot.deploy.reading.blocks import Block, block_markdown, block_table
from moot.deploy.reading.detection.side_by_side import RunOfClaims, claims_notes
from moot.deploy.reading.simulated import SIMULATED
from moot.deploy.reading.text import (
    Interval,
    count,
    emit,
    markdown_inline,
    number,
    p_value,
    percent,
    safe_json,
    visible_line,
)

_SHARED = "cells share replies: those after the first take its replies to equal asks, so their costs are not their own"

_NO_BRIER = "Brier score: not applicable to shares of votes, which nobody stated as probabilities"

_ANSWERS = 3
"""Answers that a cell names where no accuracy is known."""


def show_ablation(found: Ablation, form: str = "text", console: Console | None = None) -> None:
    """Write a grid's figures to the console."""
    emit(
        form,
        text=lambda: ablation_text(found),
        json=lambda: safe_json(found),
        md=lambda: ablation_markdown(found),
        console=console,
    )


def _remarks(found: Ablation) -> list[str]:
    shared = [_SHARED] if found.shared_replies else []
    left = [f"not begun: {', '.join(found.not_begun)}"] if found.not_begun else []
    return ([SIMULATED] if found.simulated else []) + shared + left + found.warnings


def _blocks(found: Ablation) -> list[Block]:
    blocks = [_cells(found), *crossed(found)]
    compared = [each for each in found.cells if each.vs_baseline is not None]
    if compared:
        blocks.append(_accuracy(found, compared))
    if any(each.brier for each in found.cells):
        blocks += _brier(found)
    blocks += debate_blocks(found.cells, _keys(found), found.baseline)
    return [*blocks, _main_effects(found)] if found.main_effects else blocks


def _notes(found: Ablation) -> list[str]:
    """What stands under the tables: claims left out, in one line where their numbers are the same for all cells."""
    cells = _own(found)
    notes = [_NO_BRIER] if any(VOTES in each.brier_left_out for each in cells) else []
    runs = [RunOfClaims(e.claims, e.seconds, None, e.trained_on, e.group_trained_on) for e in cells]
    if len(cells) > 1 and len({(run.trained_on, run.group_trained_on) for run in runs}) == 1:
        return notes + claims_notes(["every cell"], runs[:1])
    return notes + claims_notes([each.cell for each in cells], runs)


def _own(found: Ablation) -> list[CellFigures]:
    """The cells that have a run of their own."""
    return [each for each in found.cells if each.same_as is None]


def _keys(found: Ablation) -> tuple[str, ...]:
    """What the columns that tell the cells apart are called: a key's last part, where that is enough."""
    keys = list(found.cells[0].values)
    last = [key.rpartition(".")[2] for key in keys]
    return tuple(end if last.count(end) == 1 else key for key, end in zip(keys, last, strict=True))


def _cells(found: Ablation) -> Block:
    cells = _own(found)
    columns = claim_columns(cells) | {
        "accuracy, %": [_share(each.accuracy, each.accuracy_interval) for each in cells],
        "n": [count(each.scored) for each in cells],
        "coverage, %": [_share(each.coverage) for each in cells],
        "failed": [count(each.failed) for each in cells],
        "abstained": [count(each.abstained) for each in cells],
        "rounds": [number(each.rounds_mean, 2) for each in cells],
        "tokens /case": [
            "unknown" if each.tokens_per_case is None else f"{each.tokens_per_case:,.0f}" for each in cells
        ],
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
    title = "accuracy with Wilson's 95 % interval, over the n cases with a gold label (no answer is wrong)" + trivial(
        cells
    )
    figures = {each.cell: row for each, row in zip(cells, zip(*columns.values(), strict=True), strict=True)}
    rows = [
        (*each.values.values(), *(figures[each.cell] if each.same_as is None else _as(each.same_as, len(columns))))
        for each in found.cells
    ]
    return Block(title, (*_keys(found), *columns), rows)


def _answers(counts: Mapping[str, int]) -> str:
    """The most frequent answers, and how many cases have another."""
    named = list(counts.items())[:_ANSWERS]
    others = sum(counts.values()) - sum(n for _, n in named)
    said = [f"{answer} {n:,}" for answer, n in named]
    return ", ".join([*said, f"others {others:,}"] if others else said) or "-"


def _as(cell: str, columns: int) -> tuple[str, ...]:
    """In place of figures, whose run serves."""
    return (f"as {cell}", *[""] * (columns - 1))


def _share(value: float | None, interval: Interval | None = None) -> str:
    return percent(value, interval).replace(" %", "")


def _tokens(per_case: float | None) -> str:
    return "unknown" if per_case is None else f"{per_case:,.0f}"


def _accuracy(found: Ablation, compared: Sequence[CellFigures]) -> Block:
    title = (
        f"accuracy against {found.baseline}, on cases that both scored (McNemar's exact p; BH: adjusted for "
        f"{len(compared)} {'comparison' if len(compared) == 1 else 'comparisons'}; +b: only this cell right)"
    )
    header = (*_keys(found), "points", "p", "p, BH", "+b/-c", "pairs", "left out")
    rows = [(*each.values.values(), *_against(each.vs_baseline)) for each in compared if each.vs_baseline]
    return _without_empty_end(Block(title, header, rows))


def _without_empty_end(block: Block) -> Block:
    """The block without its last column, where that says nothing."""
    if any(row[-1] != "-" for row in block.rows):
        return block
    return Block(block.title, block.header[:-1], [row[:-1] for row in block.rows])


def _left_out(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {why}" for why, n in reasons.items()) or "-"


def _against(found: Against) -> tuple[str, ...]:
    test = found.accuracy
    left_out = _left_out(found.left_out)
    if test.difference is None:
        return ("unknown", "unknown", "unknown", "-", "0", left_out)
    discordant = f"+{test.only_first:,}/-{test.only_second:,}"
    points = f"{100 * test.difference:+.1f}"
    return (points, p_value(test.p_value), p_value(found.p_adjusted), discordant, f"{test.n:,}", left_out)


def _brier(found: Ablation) -> list[Block]:
    """The means, and the changes from the baseline: two tables, for one would be too wide."""
    keys = _keys(found)
    title = "Brier score of the verdicts' distributions, 0 (best) to 2: mean with its BCa 95 % interval"
    means = [(*e.values.values(), *_brier_mean(e), _left_out(e.brier_left_out)) for e in _own(found)]
    blocks = [_without_empty_end(Block(title, (*keys, "Brier", "n", "left out"), means))]
    rows = [
        (*each.values.values(), *_brier_change(each.brier.vs_baseline))
        for each in found.cells
        if each.brier and each.brier.vs_baseline
    ]
    title = f"change of the Brier score from {found.baseline} by case (Wilcoxon's p, BH as above; delta: Cliff's)"
    return [*blocks, Block(title, (*keys, "change", "p", "p, BH", "delta", "pairs"), rows)] if rows else blocks


def _brier_mean(cell: CellFigures) -> tuple[str, str]:
    brier = cell.brier
    if brier is None:
        return ("not applicable" if VOTES in cell.brier_left_out else "unknown", "0")
    ends = f" [{brier.interval[0]:.3f}, {brier.interval[1]:.3f}]" if brier.interval else ""
    return (f"{brier.mean:.3f}{ends}", count(brier.n))


def _brier_change(against: BrierAgainst) -> tuple[str, ...]:
    return (
        f"{against.difference:+.3f}",
        p_value(against.p_value),
        p_value(against.p_adjusted),
        "unknown" if against.cliffs_delta is None else f"{against.cliffs_delta:+.2f}",
        count(against.n),
    )


def _main_effects(found: Ablation) -> Block:
    n = found.main_effects[0].n
    title = (
        f"each value, the mean over the others, on the {n:,} cases that every cell scored (points: against the "
        "baseline's value, with the BCa 95 % interval)"
    )
    rows = [
        (
            f"{each.key}={each.value}",
            _share(each.accuracy),
            _points(each.difference, each.interval),
            _tokens(each.tokens_per_case),
        )
        for each in found.main_effects
    ]
    return Block(title, ("value", "accuracy, %", "points", "tokens /case"), rows)


def _points(difference: float | None, interval: Interval | None) -> str:
    if difference is None:
        return "-"
    ends = f" [{100 * interval[0]:+.1f}, {100 * interval[1]:+.1f}]" if interval else ""
    return f"{100 * difference:+.1f}{ends}"


def ablation_text(found: Ablation) -> RenderableType:
    """The figures for a terminal."""
    parts: list[RenderableType] = [Text(visible_line(remark), style="bold yellow") for remark in _remarks(found)]
    for block in _blocks(found):
        parts += [*([Text()] if parts else []), Text(visible_line(block.title)), block_table(block)]
    return Group(*parts, *(Text(visible_line(note)) for note in _notes(found)))


def ablation_markdown(found: Ablation) -> str:
    """The figures as Markdown."""
    parts = ["# Ablation", *(f"**{markdown_inline(remark)}**" for remark in _remarks(found))]
    for block in _blocks(found):
        parts += [markdown_inline(block.title), block_markdown(block)]
    parts += map(markdown_inline, _notes(found))
    return "\n\n".join(parts) + "\n"


def next_cells(found: Ablation) -> list[tuple[str, str]]:
    """The cells to look at first, and why: the baseline and the most accurate other one, as far as they have begun.

    Of several that are equally accurate the first is named, with how many there are.
    """
    baseline = next((each for each in _own(found) if each.cell == found.baseline), None)
    cells = [] if baseline is None else [(baseline.cell, "the baseline")]
    others = [each for each in _own(found) if each.cell != found.baseline and each.accuracy is not None]
    if not others:
        return cells
    most = max(each.accuracy for each in others if each.accuracy is not None)
    best = [each for each in others if each.accuracy == most]
    why = "the most accurate of the others" if len(best) == 1 else f"one of the {len(best)} most accurate of the others"
    same = ", as accurate as the baseline" if baseline is not None and baseline.accuracy == most else ""
    return [*cells, (best[0].cell, why + same)]
