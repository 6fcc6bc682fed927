"""Comparison of runs: a row for each, and each against the first on the cases that both scored."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.claims import Claim, ids_trained_on, read_claims
from moot.deploy.results.detection.detection import DurationSummary, claims_of, counted_claims
from moot.deploy.results.detection.estimates import IntervalEstimate
from moot.deploy.results.detection.figures import ClaimSet, macro_f1_difference
from moot.deploy.results.record.run_record import RunRecord
from moot.deploy.results.report.blocks import Block
from moot.deploy.results.report.display import DisplayMixin
from moot.deploy.results.summaries.accuracy import PairedComparison, VoteFigures, compare_paired
from moot.deploy.results.summaries.differing_cases import DifferingCase, differing_cases
from moot.deploy.results.summaries.summary import Summary, record_summary
from moot.deploy.results.text import Interval
from moot.deploy.results.text import cases as number_of_cases
from moot.protocols.errors import ConfigError


class RunRow(FrozenModel):
    """Row of a run in a comparison, with the figures of its summary.

    Attributes:
        n: finished cases.
        tokens_per_case: mean tokens of a finished case, without measurement-only calls.
        token_cost_x: the same relative to the openings of agent 0.
        judge_passes_per_case: mean number of judgments of a finished case, without measurement-only ones.
        flip_rate, judge_stability: from the audit's passes, the same for every protocol, with their numbers of cases
            (`_cases`); None without an audit. `flip_rate_split` is over the cases with several answers, because a
            single answer cannot flip.
        audit_variants: kinds of variants of the audit's evidence.
        scored_groups: groups of dependent cases among the `scored` ones; None if all are independent.
        answered: the `scored` verdicts with an answer; the others are wrong in `accuracy` and excluded from
            `accuracy_answered`.
        votes: figures of the verdicts decided by a vote of the agents; None without any.
        claims: classification figures over claims; None for other tasks, or without a usable claim.
        seconds: mean duration of a finished claim; None likewise.
        trained_on, group_trained_on: claims excluded because the run's classifier was trained on them, or on others
            of their groups.
        macro_f1_vs_first: difference of the macro F1 on the claims usable in both; None for the first run and for
            other tasks.
        vs_first: paired comparison of this run with the first one, on the cases that both scored; None for the first.
    """

    run: str
    protocol: str | None
    models: dict[str, list[str]]
    simulated: bool
    n: int
    failed: int
    open: int
    scored: int
    scored_groups: int | None = None
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
    judge_stability_cases: int | None = None
    flip_rate: float | None
    flip_rate_cases: int | None = None
    votes: VoteFigures | None
    flip_rate_split: float | None
    flip_rate_split_cases: int | None = None
    audit_variants: list[str] = Field(default_factory=list)
    claims: ClaimSet | None
    seconds: DurationSummary | None
    trained_on: int
    group_trained_on: int
    macro_f1_vs_first: IntervalEstimate | None
    vs_first: PairedComparison | None


_AUDITED = {
    name: name.replace("judge_stability", "judge_stability_audit").replace("flip_rate", "flip_rate_audit")
    for figure in ("judge_stability", "flip_rate", "flip_rate_split")
    for name in (figure, f"{figure}_cases")
}
"""Fields of a row that are those of the audit in the summary: a protocol's own judging cannot be compared."""

_SAME = (RunRow.model_fields.keys() & Summary.model_fields.keys()) - {
    "token_cost_x",
    *_AUDITED,
}
"""Fields of a row that are copied from the summary."""


class RunComparison(DisplayMixin, FrozenModel):
    """Comparison of several runs.

    Attributes:
        rows: the baseline, then the others in the order given.
        warnings: differences between the runs, and figures that pool parts of a task.
        cases: cases that the runs do not all answer alike; None where they were not requested.
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
        from moot.deploy.results.summaries.comparison_blocks import comparison_blocks

        return comparison_blocks(self)


class _Cases:
    """Cases of a run: content hash, correctness and claim by case id, without cases the classifier was trained on."""

    def __init__(self, record: RunRecord) -> None:
        columns = (record.cases[name].to_pylist() for name in ("case_id", "content_hash"))
        self.content: Mapping[str, str] = dict(zip(*columns, strict=True))
        self.references = record.references
        claims = read_claims(record)
        excluded = ids_trained_on(claims)
        self.right = {v.case_id: v.correct for v in record.verdicts if v.case_id not in excluded}
        self.claims: Mapping[str, Claim] = {claim.case_id: claim for claim in counted_claims(claims)}

    def claims_among(self, case_ids: Iterable[str]) -> dict[str, Claim]:
        """Usable claims among some cases, by case id."""
        return {each: self.claims[each] for each in case_ids if each in self.claims}


def compare(
    folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *others: str | os.PathLike[str],
    baseline: str | os.PathLike[str] | None = None,
    cases: bool = False,
) -> RunComparison:
    """Compares runs of the same cases: `compare(a, b)` or `compare([a, b])`.

    Args:
        folders: the runs, or the first of them: folders, or results of `moot.run` and `moot.open_run`.
        others: further runs.
        baseline: the run that the others are compared with: one of the folders, or the end of its path; the first run
            when None.
        cases: whether to list the cases that differ.

    A case is paired when its id has the same text in both runs and both verdicts can be scored. Claims that a run's
    classifier was trained on, or whose group it was trained on, are excluded from pairs and accuracies.

    Raises:
        ConfigError: for fewer than two runs, or runs without a common case.
        RecordError: a folder has no run or cannot be read.
    """
    runs = [*([folders] if isinstance(folders, str | os.PathLike) else folders), *others]
    if len(runs) < 2:
        raise ConfigError("name at least two runs to compare: the first is the baseline of the others")
    return compare_records([RunRecord(folder) for folder in _baseline_first(runs, baseline)], cases=cases)


def compare_records(records: Sequence[RunRecord], *, cases: bool = False) -> RunComparison:
    """Comparison of records that are open already, the baseline first; see `compare`.

    Raises:
        ConfigError: two runs have no case in common.
        RecordError: a record cannot be read.
    """
    summaries = [record_summary(record) for record in records]
    by_run = [_Cases(record) for record in records]
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
        scored = [i for i in shared if each.right.get(i) is not None and first.right.get(i) is not None]
        paired = compare_paired(
            [each.right[i] for i in scored],
            [first.right[i] for i in scored],
            list(map(first.references.group, scored)),
        )
        rows.append(
            RunRow(
                **{name: getattr(summary, name) for name in _SAME},
                n=summary.finished,
                rounds_mean=summary.debate_rounds_mean,
                token_cost_x=summary.token_cost_x_without_audits,
                **{name: getattr(summary, of_audit) for name, of_audit in _AUDITED.items()},
                **claims_of(summary.detection),
                macro_f1_vs_first=None
                if each is first or not each.claims
                else macro_f1_difference(each.claims_among(shared), first.claims_among(shared)),
                vs_first=None if each is first else paired,
            )
        )
    if len({tuple(row.audit_variants) for row in rows if row.audit_variants}) > 1:
        warnings.append(
            "the audits perturb the evidence differently (`judging.variants`): judge stability differs by that"
        )
    if len({str(row.models["agent"]) for row in rows if "agent" in row.models}) > 1:
        warnings.append("the runs' agents are not the same models")
    return RunComparison(
        schema_version=summaries[0].schema_version,
        rows=rows,
        warnings=warnings,
        cases=differing_cases(records) if cases else None,
    )


def _baseline_first(folders: Sequence[str | os.PathLike[str]], baseline: str | os.PathLike[str] | None) -> list[str]:
    """Folders with the baseline before the others.

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
    """Short unique names of runs: the shortest ends of their paths that differ.

    >>> run_names(["runs/a/selene", "runs/a/single-agent"]), run_names(["a/selene", "b/selene"])
    (['selene', 'single-agent'], ['a/selene', 'b/selene'])
    """
    paths = [Path(run) for run in runs]
    for n in range(1, max(len(path.parts) for path in paths) + 1):
        names = [str(Path(*path.parts[-n:])) for path in paths]
        if len(set(names)) == len(set(paths)):
            break
    return names
