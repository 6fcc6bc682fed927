"""Comparison of runs: a row for each, and each against the first on the cases that both scored."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from moot.actors.record.store.mirror import record_path
from moot.actors.record.tables import read_table
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.claims import Claim, ids_trained_on, read_claims
from moot.deploy.results.detection.detection import DurationSummary, claims_of, counted_claims
from moot.deploy.results.detection.estimates import IntervalEstimate, in_percent, signed_points, without_interval
from moot.deploy.results.detection.figures import ALWAYS, BARE, VERDICT, ClaimSet, macro_f1_difference
from moot.deploy.results.detection.show import claims_notes, mean_seconds
from moot.deploy.results.record import References, latest_verdicts
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.display import DisplayMixin
from moot.deploy.results.report.render import SIMULATED
from moot.deploy.results.summaries.accuracy import PairedComparison, VoteFigures, compare_paired
from moot.deploy.results.summaries.differing_cases import DifferingCase, differing_blocks, differing_cases
from moot.deploy.results.summaries.summary import Summary, summarise
from moot.deploy.results.text import Interval, count, number, p_value, percent, times
from moot.deploy.results.text import cases as number_of_cases
from moot.protocols.claims import HALLUCINATED, SUPPORTED
from moot.protocols.errors import ConfigError


class RunRow(FrozenModel):
    """A run of a comparison; the figures are those of its summary.

    Attributes:
        n: finished cases.
        tokens_per_case: mean tokens of a finished case, without measurement-only calls.
        token_cost_x: the same relative to agent 0's openings.
        judge_passes_per_case: mean number of judgments of a finished case, without measurement-only ones.
        flip_rate, judge_stability: from the audit's passes, the same for every protocol; None without an audit.
            `flip_rate_split` is over the cases with several answers, because a single one cannot flip.
        answered: the `scored` verdicts with an answer; the others are wrong in `accuracy` and left out of
            `accuracy_answered`.
        votes: figures of the verdicts decided by a vote of the agents; None without any.
        claims: classification figures over claims; None for runs over anything else, or without a usable claim.
        seconds: mean duration of a finished claim; None likewise.
        trained_on, group_trained_on: claims excluded because the run's classifier was trained on them, or on others
            of their groups.
        macro_f1_vs_first: difference of the macro F1 on the claims usable in both; None for the first run itself, and
            for runs over anything else.
        vs_first: paired comparison of this run with the first run, on the cases that both scored; None for the first
            run itself.
    """

    run: str
    protocol: str | None
    models: dict[str, list[str]]
    simulated: bool
    n: int
    failed: int
    open: int
    scored: int
    answered: int
    accuracy_answered: float | None
    accuracy_answered_interval: Interval | None
    accuracy: float | None
    accuracy_interval: Interval | None
    skip_rate: float | None
    rounds_mean: float | None
    tokens_per_case: float | None
    token_cost_x: float | None
    judge_passes_per_case: float | None
    judge_stability: float | None
    flip_rate: float | None
    votes: VoteFigures | None
    flip_rate_split: float | None
    claims: ClaimSet | None
    seconds: DurationSummary | None
    trained_on: int
    group_trained_on: int
    macro_f1_vs_first: IntervalEstimate | None
    vs_first: PairedComparison | None


_SAME = (RunRow.model_fields.keys() & Summary.model_fields.keys()) - {
    "token_cost_x",
    "judge_stability",
    "flip_rate",
    "flip_rate_split",
}
"""What a row has from the summary as it is."""


class RunComparison(DisplayMixin, FrozenModel):
    """Comparison of several runs.

    Attributes:
        rows: the baseline, then the others in the order given.
        warnings: what differs between the runs, and what is pooled.
        cases: those that the runs do not all answer alike; None where they were not asked for.
    """

    schema_version: int
    rows: list[RunRow]
    warnings: list[str]
    cases: list[DifferingCase] | None = None

    def display_name(self) -> str:
        """See `DisplayMixin`."""
        return ", ".join(run_names([row.run for row in self.rows]))

    def report_blocks(self) -> list[Block]:
        """See `DisplayMixin`."""
        return comparison_blocks(self)


class _Cases:
    """A run's cases: the content hash of each id, and whether its verdict is right, where it may be scored."""

    def __init__(self, folder: str | Path) -> None:
        hashes = read_table(folder, "cases", ["content_hash"]).to_pylist()
        self.content: Mapping[str, str] = {row["case_id"]: row["content_hash"] for row in hashes}
        verdicts = latest_verdicts(folder)
        self.references = References.of(folder)
        claims = read_claims(folder, verdicts, self.references)
        left_out = ids_trained_on(claims)
        self.right: Mapping[str, bool | None] = {v.case_id: v.correct for v in verdicts if v.case_id not in left_out}
        self.claims: Mapping[str, Claim] = {claim.case_id: claim for claim in counted_claims(claims)}

    def claims_among(self, case_ids: Iterable[str]) -> dict[str, Claim]:
        """The usable claims among these cases."""
        return {each: self.claims[each] for each in case_ids if each in self.claims}


def compare(
    folders: Sequence[str | os.PathLike[str]],
    *,
    baseline: str | os.PathLike[str] | None = None,
    cases: bool = False,
) -> RunComparison:
    """Compares runs of the same cases.

    Args:
        folders: the runs: folders, or what `moot.run` and `moot.open_run` return.
        baseline: the run that the others are compared with: one of the folders, or the end of its path; the first one
            when None.
        cases: whether to list the cases that differ.

    A case is paired when its id has the same text in both runs and both verdicts can be scored. Claims that a run's
    classifier was trained on, or on others of their groups, are excluded from pairs and accuracies.

    Raises:
        ConfigError: for fewer than two runs, or runs without a common case.
        RecordError: when a folder holds no run or cannot be read.
    """
    if isinstance(folders, str | os.PathLike) or len(folders) < 2:
        raise ConfigError("name at least two runs to compare: the first one, and others that are compared with it")
    paths = [record_path(folder) for folder in _baseline_first(folders, baseline)]
    summaries = [summarise(path) for path in paths]
    by_run = [_Cases(path) for path in paths]
    first, warnings = by_run[0], list[str]()
    if any(summary.accuracy_by_part for summary in summaries):
        warnings.append("accuracy is over all parts of the task together: `moot show RUN` has it part by part")
    rows = []
    for summary, each in zip(summaries, by_run, strict=True):
        same_id = [case_id for case_id in first.content if case_id in each.content]
        shared = [case_id for case_id in same_id if first.content[case_id] == each.content[case_id]]
        if first.content and each.content and not same_id:
            raise ConfigError(f"{summary.run} and {summaries[0].run} have no case in common: nothing can be compared")
        if other := len(same_id) - len(shared):
            differ = "1 case id has another text" if other == 1 else f"{other:,} case ids have other texts"
            warnings.append(f"{summary.run}: {differ}; not paired")
        if len(shared) < max(len(first.content), len(each.content)):
            are = "is" if len(shared) == 1 else "are"
            only = f"only {number_of_cases(len(shared))} {are} shared with {summaries[0].run}"
            warnings.append(f"{summary.run}: {only}")
        against = compare_paired(
            [each.right.get(i) for i in shared],
            [first.right.get(i) for i in shared],
            independent=first.references.independent(shared),
        )
        rows.append(
            RunRow(
                **{name: getattr(summary, name) for name in _SAME},
                n=summary.finished,
                rounds_mean=summary.debate_rounds_mean,
                token_cost_x=summary.token_cost_x_without_audits,
                judge_stability=summary.judge_stability_audit,
                flip_rate=summary.flip_rate_audit,
                flip_rate_split=summary.flip_rate_audit_split,
                **claims_of(summary.detection),
                macro_f1_vs_first=None
                if each is first or not each.claims
                else macro_f1_difference(each.claims_among(shared), first.claims_among(shared)),
                vs_first=None if each is first else against,
            )
        )
    if len({str(row.models["agent"]) for row in rows if "agent" in row.models}) > 1:
        warnings.append("the runs' agents are not the same models")
    return RunComparison(
        schema_version=summaries[0].schema_version,
        rows=rows,
        warnings=warnings,
        cases=differing_cases(paths) if cases else None,
    )


def _baseline_first(folders: Sequence[str | os.PathLike[str]], baseline: str | os.PathLike[str] | None) -> list[str]:
    """The folders, the baseline before the others.

    Raises:
        ConfigError: no folder, or more than one, is the baseline.
    """
    names = [os.fspath(folder) for folder in folders]
    if baseline is None:
        return names
    wanted = os.fspath(baseline).rstrip("/")
    found = [each for each in names if f"/{each.rstrip('/')}".endswith(f"/{wanted}")]
    if len(found) != 1:
        problem = "none of the runs" if not found else f"{len(found)} of the runs"
        raise ConfigError(f"--baseline {wanted}: {problem} is called so; name one of {', '.join(names)}")
    return [found[0], *(each for each in names if each is not found[0])]


def run_names(runs: Sequence[str]) -> list[str]:
    """Short unique names of runs: as much of the end of their paths as distinguishes them.

    >>> run_names(["runs/a/selene", "runs/a/single-agent"]), run_names(["a/selene", "b/selene"])
    (['selene', 'single-agent'], ['a/selene', 'b/selene'])
    """
    paths = [Path(run) for run in runs]
    for n in range(1, max(len(path.parts) for path in paths) + 1):
        names = [str(Path(*path.parts[-n:])) for path in paths]
        if len(set(names)) == len(set(paths)):
            break
    return names


def comparison_blocks(comparison: RunComparison) -> list[Block]:
    """Report blocks of a comparison: figures, each run against the first, and judges where a run has an audit."""
    rows = comparison.rows
    names = run_names([row.run for row in rows])
    remarks = [SIMULATED] * any(row.simulated for row in rows) + comparison.warnings
    blocks: list[Block] = [*(Note(remark, "warning") for remark in remarks), Heading("Comparison", 1)]
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
            (name, number(row.judge_stability), percent(row.flip_rate), percent(row.flip_rate_split))
            for name, row in zip(names, rows, strict=True)
        ]
        header = ("run", "judge stability", "flip rate", "where answers differ")
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
    """Table of answered cases and their accuracy by run; none where all cases are answered."""
    if all(row.answered == row.scored for row in rows):
        return []
    shares = [percent(row.accuracy_answered, row.accuracy_answered_interval) for row in rows]
    cells = [(name, f"{row.answered:,}", share) for name, row, share in zip(names, rows, shares, strict=True)]
    return [Table("of the n cases, those with an answer: no answer is wrong", ("run", "answered", "accuracy"), cells)]


def _tied(rows: Sequence[RunRow], names: Sequence[str]) -> list[Table]:
    """Table of tied votes by run; the accuracy above counts them as the tie-break decided."""
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
        "n": [f"{row.scored:,}" for row in rows],
        "failed": [f"{row.failed:,}" for row in rows],
        "open": [f"{row.open:,}" for row in rows],
        "skip %": ["-" if row.skip_rate is None else f"{100 * row.skip_rate:.1f}" for row in rows],
        "rounds": [number(row.rounds_mean, 2) for row in rows],
        "tokens /case": [count(row.tokens_per_case) for row in rows],
        "cost": [times(row.token_cost_x) for row in rows],
    }
    if all(map(_says_protocol, names, rows)):
        del columns["protocol"]
    if not any(row.open for row in rows):
        del columns["open"]
    return Table("", tuple(columns), list(zip(*columns.values(), strict=True)))


def _says_protocol(name: str, row: RunRow) -> bool:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", row.protocol or "unknown")
    return f"{Path(name).name}-".startswith(f"{slug}-")


def _against(found: PairedComparison | None) -> tuple[str, str, str, str]:
    if found is None or found.difference is None:
        return ("unknown", "unknown", "-", "0")
    discordant = f"+{found.only_first:,}/-{found.only_second:,}"
    difference, *ends = (f"{100 * each:+z.1f}" for each in (found.difference, *(found.interval or ())))
    interval = f" [{', '.join(ends)}]" if ends else ""
    return (f"{difference}{interval}", p_value(found.p_value), discordant, f"{found.n:,}")


def _claims(names: Sequence[str], runs: Sequence[RunRow]) -> list[Table]:
    """Table of F1 by run, with trivial answers to the claims of the first run that has any, and the differences."""
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
