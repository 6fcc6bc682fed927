"""Report blocks of a comparison of runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from moot.deploy.results.detection.estimates import in_percent, signed_points, without_interval
from moot.deploy.results.detection.figures import ALWAYS, BARE, VERDICT, ClaimSet
from moot.deploy.results.detection.show import claims_notes, mean_seconds
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.render import SIMULATED
from moot.deploy.results.summaries.accuracy import PairedComparison
from moot.deploy.results.summaries.compare import RunComparison, RunRow, run_names
from moot.deploy.results.summaries.differing_cases import differing_blocks
from moot.deploy.results.text import count, in_groups, number, p_value, percent, times
from moot.protocols.claims import HALLUCINATED, SUPPORTED


def comparison_blocks(comparison: RunComparison) -> list[Block]:
    """Report blocks of a comparison: figures, each run against the first, claims, audits of judges, and cases."""
    rows = comparison.rows
    names = run_names([row.run for row in rows])
    warnings = [SIMULATED] * any(row.simulated for row in rows) + comparison.warnings
    blocks: list[Block] = [*(Note(warning, "warning") for warning in warnings), Heading("Comparison", 1)]
    blocks += [_figures(rows, names), *_answered(rows, names), *_tied(rows, names)]
    against = [(name, *_against(row.vs_first)) for name, row in zip(names, rows, strict=True) if row.vs_first]
    if against:
        title = f"against {names[0]}, on cases that both scored ([95 % interval], McNemar; +b: only this run right)"
        blocks.append(Table(title, ("run", "points", "p", "+b/-c", "n"), against))
    blocks += _against_always_debate(rows, names)
    if any(row.claims or row.trained_on or row.group_trained_on for row in rows):
        blocks += _claims(names, rows)
    if any(row.judge_stability is not None or row.flip_rate is not None for row in rows):
        judged = [
            (
                name,
                ", ".join(row.audit_variants),
                f"{number(row.judge_stability)} (n = {count(row.judge_stability_cases)})",
                percent(row.flip_rate, n=row.flip_rate_cases),
                percent(row.flip_rate_split, n=row.flip_rate_split_cases),
            )
            for name, row in zip(names, rows, strict=True)
        ]
        header = ("run", "variants", "judge stability", "flip rate", "where answers differ")
        blocks.append(Table("judges, audit", header, judged))
    if comparison.cases is not None:
        blocks += differing_blocks(comparison.cases, names)
    return blocks + [Note(note) for note in claims_notes(names, [(e.trained_on, e.group_trained_on) for e in rows])]


def _against_always_debate(rows: Sequence[RunRow], names: Sequence[str]) -> list[Table]:
    """Table of rounds, judge passes and tokens relative to `always-debate` (SELENE's table 1); none without it."""
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


def _answered(rows: Sequence[RunRow], names: Sequence[str]) -> list[Table]:
    """Table of answered cases and their accuracy by run; none where every scored case has an answer."""
    if all(row.answered == row.scored for row in rows):
        return []
    shares = [percent(row.accuracy_answered, row.accuracy_answered_interval) for row in rows]
    cells = [(name, f"{row.answered:,}", share) for name, row, share in zip(names, rows, shares, strict=True)]
    title = "of the n cases, those with an answer: no answer counts as wrong"
    return [Table(title, ("run", "answered", "accuracy"), cells)]


def _tied(rows: Sequence[RunRow], names: Sequence[str]) -> list[Table]:
    """Table of tied votes by run, with the accuracy if ties count as wrong; none without ties."""
    found = [(name, row.votes) for name, row in zip(names, rows, strict=True) if row.votes is not None]
    if not any(votes.tied for _, votes in found):
        return []
    cells = [
        (name, f"{votes.tied:,} of {votes.n:,}", percent(votes.accuracy_strict, votes.accuracy_strict_interval))
        for name, votes in found
    ]
    return [Table("votes that were ties: broken above, wrong here", ("run", "tied", "accuracy"), cells)]


def _figures(rows: Sequence[RunRow], names: Sequence[str]) -> Table:
    columns = {
        "run": list(names),
        "protocol": [row.protocol or "unknown" for row in rows],
        "accuracy, %": [percent(row.accuracy, row.accuracy_interval).replace(" %", "") for row in rows],
        "n": [in_groups(row.scored, row.scored_groups) for row in rows],
        "failed": [f"{row.failed:,}" for row in rows],
        "open": [f"{row.open:,}" for row in rows],
        "skip %": ["-" if row.skip_rate is None else f"{100 * row.skip_rate:.1f}" for row in rows],
        "rounds": [number(row.rounds_mean, 2) for row in rows],
        "tokens /case": [count(row.tokens_per_case) for row in rows],
        "cost": [times(row.token_cost_x) for row in rows],
    }
    if all(map(_names_protocol, names, rows)):
        del columns["protocol"]
    if not any(row.open for row in rows):
        del columns["open"]
    return Table("", tuple(columns), list(zip(*columns.values(), strict=True)))


def _names_protocol(name: str, row: RunRow) -> bool:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", row.protocol or "unknown")
    return f"{Path(name).name}-".startswith(f"{slug}-")


def _against(found: PairedComparison | None) -> tuple[str, str, str, str]:
    if found is None or found.difference is None:
        return ("unknown", "unknown", "-", "0")
    discordant = f"+{found.only_first:,}/-{found.only_second:,}"
    difference, *ends = (f"{100 * each:+z.1f}" for each in (found.difference, *(found.interval or ())))
    interval = f" [{', '.join(ends)}]" if ends else ""
    return (f"{difference}{interval}", p_value(found.p_value), discordant, in_groups(found.n, found.groups))


def _claims(names: Sequence[str], runs: Sequence[RunRow]) -> list[Table]:
    """Tables of F1 by run and of its differences, with baselines of one constant answer on the first run's claims."""
    known = next((run.claims for run in runs if run.claims), None)
    judged = any(run.claims and run.claims.has_bare for run in runs)
    rows = [
        (
            name,
            *_f1s(run.claims, VERDICT),
            *((_bare(run.claims),) if judged else ()),
            mean_seconds(run.seconds),
        )
        for name, run in zip(names, runs, strict=True)
    ]
    rows += [(name, *_f1s(known, name), *(("-",) if judged else ()), "-") for name in ALWAYS.values()]
    heads = ("run", f"F1 /{SUPPORTED}", f"F1 /{HALLUCINATED}", "F1 /macro", *(("bare /macro",) if judged else ()))
    title = "claims: F1, %, each with its own class as the positive one; one left open is a miss"
    blocks = [Table(title, (*heads, "s /case"), rows)]
    against = [
        (name, signed_points(run.macro_f1_vs_first))
        for name, run in zip(names, runs, strict=True)
        if run.macro_f1_vs_first is not None
    ]
    if against:
        title = f"macro F1 against {names[0]}, on the claims of both ([95 %, groups resampled])"
        blocks.append(Table(title, ("run", "points"), against))
    return blocks


def _f1s(claims: ClaimSet | None, by: str) -> tuple[str, str, str]:
    return (_f1(claims, by, SUPPORTED), _f1(claims, by, HALLUCINATED), _f1(claims, by))


def _f1(claims: ClaimSet | None, by: str, label: str = "") -> str:
    """F1 of a label, or macro F1; recall where only one class occurs."""
    found = claims.by(by) if claims is not None else None
    if claims is None or found is None:
        return "-"
    if claims.only is not None:
        return f"recall {without_interval(found.accuracy)}" if label == claims.only else "-"
    return without_interval(found.of(label).f1) if label else in_percent(found.macro_f1)


def _bare(claims: ClaimSet | None) -> str:
    found = claims.by(BARE) if claims is not None else None
    return "-" if found is None else without_interval(found.macro_f1)
