"""Runs side by side: one row each, and each against the first on the cases that both scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from moot.actors.record.tables import read_table
from moot.deploy.reading.record import latest_verdicts
from moot.deploy.reading.show import SIMULATED, paired_words
from moot.deploy.reading.summary import Paired, paired, summarise
from moot.deploy.reading.text import (
    Interval,
    emit,
    markdown_inline,
    markdown_table,
    number,
    percent,
    safe_json,
    times,
    visible_line,
)
from moot.protocols.errors import ConfigError


class Row(BaseModel):
    """A run among others; the figures are those of its summary.

    Attributes:
        n: cases with a verdict that did not fail.
        tokens_per_case: tokens of a finished case, without what served only to measure.
        token_cost_x: the same relative to agent 0's openings.
        flip_rate, judge_stability: by the audit's passes, the same for every protocol; None without an audit.
        vs_first: this run (first) against the first run (second) on the cases that both scored; None for the first
            run itself.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    protocol: str | None
    models: dict[str, list[str]]
    simulated: bool
    n: int
    failed: int
    open: int
    scored: int
    accuracy: float | None
    accuracy_interval: Interval | None
    skip_rate: float | None
    rounds_mean: float | None
    tokens_per_case: float | None
    token_cost_x: float | None
    judge_stability: float | None
    flip_rate: float | None
    vs_first: Paired | None


class Comparison(BaseModel):
    """Several runs, in the order given; `warnings` say what makes them unequal."""

    model_config = ConfigDict(frozen=True)

    schema_version: int
    rows: list[Row]
    warnings: list[str]


class _Cases:
    """A run's cases: which text each id stands for, and whether its verdict is right."""

    def __init__(self, folder: str | Path) -> None:
        hashes = read_table(folder, "cases", ["content_hash"]).to_pylist()
        self.content: Mapping[str, str] = {row["case_id"]: row["content_hash"] for row in hashes}
        self.right: Mapping[str, bool | None] = {v.case_id: v.correct for v in latest_verdicts(folder)}


def compare(folders: Sequence[str | Path]) -> Comparison:
    """Compare runs of the same cases.

    A case is paired when its id stands for the same text in both runs and both verdicts can be scored.

    Raises:
        ConfigError: without a folder.
        RecordError: when a folder holds no run or cannot be read.
    """
    if not folders:
        raise ConfigError("name at least one run to compare")
    summaries = [summarise(folder) for folder in folders]
    cases = [_Cases(folder) for folder in folders]
    first, warnings = cases[0], []
    rows = []
    for summary, each in zip(summaries, cases, strict=True):
        same_id = [case_id for case_id in first.content if case_id in each.content]
        shared = [case_id for case_id in same_id if first.content[case_id] == each.content[case_id]]
        if len(shared) < len(same_id):
            warnings.append(f"{summary.run}: {len(same_id) - len(shared)} case ids stand for other texts; not paired")
        if len(shared) < max(len(first.content), len(each.content)):
            warnings.append(f"{summary.run}: only {len(shared)} cases are shared with {summaries[0].run}")
        against = paired([each.right.get(i) for i in shared], [first.right.get(i) for i in shared])
        rows.append(
            Row(
                run=summary.run,
                protocol=summary.protocol,
                models=summary.models,
                simulated=summary.simulated,
                n=summary.finished,
                failed=summary.failed,
                open=summary.open,
                scored=summary.scored,
                accuracy=summary.accuracy,
                accuracy_interval=summary.accuracy_interval,
                skip_rate=summary.skip_rate,
                rounds_mean=summary.debate_rounds_mean,
                tokens_per_case=summary.tokens_per_case,
                token_cost_x=summary.token_cost_x_without_audits,
                judge_stability=summary.judge_stability_audit,
                flip_rate=summary.flip_rate_audit,
                vs_first=None if each is first else against,
            )
        )
    if len({str(row.models.get("agent")) for row in rows}) > 1:
        warnings.append("the runs' agents are not the same models")
    return Comparison(schema_version=summaries[0].schema_version, rows=rows, warnings=warnings)


_HEADER = ("protocol", "accuracy", "failed", "skipped", "rounds", "tokens / case", "cost x", "against the first", "run")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.protocol or "unknown",
        percent(row.accuracy, row.accuracy_interval, row.scored),
        str(row.failed) + (f" (+{row.open} open)" if row.open else ""),
        "-" if row.skip_rate is None else percent(row.skip_rate),
        number(row.rounds_mean, 2),
        "unknown" if row.tokens_per_case is None else f"{row.tokens_per_case:,.0f}",
        times(row.token_cost_x),
        "-" if row.vs_first is None else paired_words(row.vs_first),
        row.run,
    )


def _table_of(comparison: Comparison) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Header and cells; the audit's columns only where a run has an audit."""
    header: tuple[str, ...] = _HEADER
    rows = [_cells(row) for row in comparison.rows]
    if any(row.judge_stability is not None or row.flip_rate is not None for row in comparison.rows):
        header = (*header[:-1], "judge stability", "flip rate", header[-1])
        rows = [
            (*cells[:-1], number(row.judge_stability), percent(row.flip_rate), cells[-1])
            for cells, row in zip(rows, comparison.rows, strict=True)
        ]
    return header, rows


def _remarks(comparison: Comparison) -> list[str]:
    simulated = [SIMULATED] if any(row.simulated for row in comparison.rows) else []
    return simulated + comparison.warnings


def comparison_text(comparison: Comparison) -> RenderableType:
    """The comparison for a terminal."""
    header, rows = _table_of(comparison)
    table = Table(*header)
    for row in rows:
        table.add_row(*(Text(visible_line(cell)) for cell in row))
    remarks = [Text(visible_line(remark), style="bold yellow") for remark in _remarks(comparison)]
    return Group(*remarks, table)


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison as Markdown."""
    remarks = "".join(f"**{markdown_inline(remark)}**\n\n" for remark in _remarks(comparison))
    return f"# Comparison\n\n{remarks}{markdown_table(*_table_of(comparison))}\n"


def show_comparison(comparison: Comparison, form: str = "text", console: Console | None = None) -> None:
    """Write a comparison to the console."""
    emit(
        form,
        text=lambda: comparison_text(comparison),
        json=lambda: safe_json(comparison),
        md=lambda: comparison_markdown(comparison),
        console=console,
    )
