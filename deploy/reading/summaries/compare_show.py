"""A comparison of runs as it is shown: in a terminal, as Markdown, as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from moot.deploy.reading.detection.side_by_side import RunOfClaims, claims_blocks, claims_notes
from moot.deploy.reading.report.blocks import Block, Heading, Note, Table
from moot.deploy.reading.report.render import show_report
from moot.deploy.reading.simulated import SIMULATED
from moot.deploy.reading.summaries.compare import Comparison, Row
from moot.deploy.reading.summaries.paired import Paired
from moot.deploy.reading.text import number, p_value, percent, times


def run_names(runs: Sequence[str]) -> list[str]:
    """Runs by as much of the end of their paths as tells them apart.

    >>> run_names(["runs/a/selene", "runs/a/single-agent"]), run_names(["a/selene", "b/selene"])
    (['selene', 'single-agent'], ['a/selene', 'b/selene'])
    """
    paths = [Path(run) for run in runs]
    for n in range(1, max(len(path.parts) for path in paths) + 1):
        names = [str(Path(*path.parts[-n:])) for path in paths]
        if len(set(names)) == len(set(paths)):
            break
    return names


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """The figures; each run against the first; and the judges, where a run has an audit."""
    rows = comparison.rows
    names = run_names([row.run for row in rows])
    remarks = [SIMULATED] * any(row.simulated for row in rows) + comparison.warnings
    blocks: list[Block] = [*(Note(remark, "warning") for remark in remarks), Heading("Comparison", 1)]
    blocks += [_figures(rows, names), *_answered(rows, names), *_tied(rows, names)]
    against = [(name, *_against(row.vs_first)) for name, row in zip(names, rows, strict=True) if row.vs_first]
    if against:
        title = f"against {names[0]}, on cases that both scored (McNemar; +b: only this run right)"
        blocks.append(Table(title, ("run", "points", "p", "+b/-c", "n"), against))
    blocks += _against_always_debate(rows, names)
    if any(row.claims or row.trained_on or row.group_trained_on for row in rows):
        blocks += claims_blocks(names, _of_claims(rows))
    if any(row.judge_stability is not None or row.flip_rate is not None for row in rows):
        judged = [
            (name, number(row.judge_stability), percent(row.flip_rate), percent(row.flip_rate_split))
            for name, row in zip(names, rows, strict=True)
        ]
        header = ("run", "judge stability", "flip rate", "where answers differ")
        blocks.append(Table("judges, audit", header, judged))
    return blocks + [Note(note) for note in claims_notes(names, _of_claims(rows))]


def _against_always_debate(rows: Sequence[Row], names: Sequence[str]) -> list[Table]:
    """Rounds, judge passes and tokens beside those of `always-debate` (SELENE's table 1); nothing without it."""
    always = next((row.tokens_per_case for row in rows if row.protocol == "always-debate"), None)
    if always is None or len(rows) == 1:
        return []
    cells = [
        (
            name,
            number(row.rounds_mean, 2),
            number(row.judge_passes_per_case, 2),
            times(None if row.tokens_per_case is None else row.tokens_per_case / always),
        )
        for name, row in zip(names, rows, strict=True)
    ]
    return [Table("a case's cost beside debating always", ("run", "rounds", "judge passes", "tokens"), cells)]


def _answered(rows: Sequence[Row], names: Sequence[str]) -> list[Table]:
    """How many cases each run has answered, and how well; nothing where all have answered all."""
    if all(row.answered == row.scored for row in rows):
        return []
    shares = [percent(row.accuracy_answered, row.accuracy_answered_interval) for row in rows]
    cells = [(name, f"{row.answered:,}", share) for name, row, share in zip(names, rows, shares, strict=True)]
    return [Table("of the n cases, those with an answer: no answer is wrong", ("run", "answered", "accuracy"), cells)]


def _tied(rows: Sequence[Row], names: Sequence[str]) -> list[Table]:
    """How many votes of each run were ties, which the accuracy above counts as they were broken."""
    found = [(name, row.votes) for name, row in zip(names, rows, strict=True) if row.votes is not None]
    if not any(votes.tied for _, votes in found):
        return []
    cells = [
        (name, f"{votes.tied:,} of {votes.n:,}", percent(votes.accuracy_strict, votes.accuracy_strict_interval))
        for name, votes in found
    ]
    return [Table("votes that were ties: broken above, wrong here", ("run", "tied", "accuracy"), cells)]


def _of_claims(rows: Sequence[Row]) -> list[RunOfClaims]:
    return [
        RunOfClaims(row.claims, row.seconds, row.macro_f1_vs_first, row.trained_on, row.group_trained_on)
        for row in rows
    ]


def _figures(rows: Sequence[Row], names: Sequence[str]) -> Table:
    columns = {
        "run": list(names),
        "protocol": [row.protocol or "unknown" for row in rows],
        "accuracy, %": [_accuracy(row) for row in rows],
        "n": [f"{row.scored:,}" for row in rows],
        "failed": [f"{row.failed:,}" for row in rows],
        "open": [f"{row.open:,}" for row in rows],
        "skip %": ["-" if row.skip_rate is None else f"{100 * row.skip_rate:.1f}" for row in rows],
        "rounds": [number(row.rounds_mean, 2) for row in rows],
        "tokens /case": ["unknown" if row.tokens_per_case is None else f"{row.tokens_per_case:,.0f}" for row in rows],
        "cost": [times(row.token_cost_x) for row in rows],
    }
    if all(map(_says_protocol, names, rows)):
        del columns["protocol"]
    if not any(row.open for row in rows):
        del columns["open"]
    return Table("", tuple(columns), list(zip(*columns.values(), strict=True)))


def _says_protocol(name: str, row: Row) -> bool:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", row.protocol or "unknown")
    return f"{Path(name).name}-".startswith(f"{slug}-")


def _accuracy(row: Row) -> str:
    return percent(row.accuracy, row.accuracy_interval).replace(" %", "")


def _against(found: Paired | None) -> tuple[str, str, str, str]:
    if found is None or found.difference is None:
        return ("unknown", "unknown", "-", "0")
    discordant = f"+{found.only_first:,}/-{found.only_second:,}"
    return (f"{100 * found.difference:+.1f}", p_value(found.p_value), discordant, f"{found.n:,}")


def show_comparison(comparison: Comparison, form: str = "text", console: Console | None = None) -> None:
    """Write a comparison to the console."""
    show_report(comparison, lambda: comparison_blocks(comparison), form, console)
