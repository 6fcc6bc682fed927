"""Comparison of runs over the same cases: a row for each, paired differences, and the cases that differ."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from moot.deploy.results.figures.accuracy import VoteFigures
from moot.deploy.results.figures.claim_blocks import claims_notes, mean_seconds
from moot.deploy.results.figures.claims import (
    ALWAYS,
    BARE,
    VERDICT,
    Claim,
    ClaimSet,
    DurationSummary,
    claims_of,
    counted_claims,
    ids_trained_on,
    macro_f1_difference,
    read_claims,
)
from moot.deploy.results.figures.summary import Summary, record_summary
from moot.deploy.results.record import RunRecord
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.display import DisplayMixin, FrozenModel, displays
from moot.deploy.results.report.render import SIMULATED
from moot.deploy.results.stats import (
    IntervalEstimate,
    PairedComparison,
    compare_paired,
    in_percent,
    signed_points,
    without_interval,
)
from moot.deploy.results.text import Interval, count, in_groups, number, p_value, percent, times, visible_line
from moot.deploy.results.text import cases as number_of_cases
from moot.protocols.claims import HALLUCINATED, SUPPORTED
from moot.protocols.errors import ConfigError

MOST = 50
"""Cases listed in a terminal; JSON has all."""

_QUESTION = 100
"""Characters of a question in a table; a terminal shows as many as fit on a line."""


class RunAnswer(FrozenModel):
    """Answer of one run to a case.

    Attributes:
        answer: the answer; None for a verdict without one, a failed case and one that has no verdict.
        correct: whether it is right; None when unknown.
        state: `finished`, `failed`, or without a verdict `open` or `withdrawn`.
    """

    answer: str | None
    correct: bool | None
    state: str


class DifferingCase(FrozenModel):
    """Case that the runs do not all answer alike.

    Attributes:
        gold: the gold label; None without one.
        answers: by run, in the order given, the baseline first.
    """

    case_id: str
    question: str
    gold: str | None
    answers: list[RunAnswer]

    @property
    def outcome_differs(self) -> bool:
        """Whether some runs are right and others are wrong, failed or open."""
        return 0 < sum(each.correct is True for each in self.answers) < len(self.answers)


def differing_cases(runs: Sequence[RunRecord | str | Path]) -> list[DifferingCase]:
    """Differing cases of runs: those whose outcome differs first, then in the order of the first run's file.

    Only cases with the same content in all runs are compared, without claims that the classifier of one of them was
    trained on, or claims of their groups.

    Raises:
        RecordError: a record cannot be read.
    """
    records = [RunRecord.of(run) for run in runs]
    tables = [_contents(record) for record in records]
    trained_on = frozenset[str]().union(*(ids_trained_on(read_claims(record)) for record in records))
    found = []
    columns = ["case_id", "content_hash", "question", "gold", "index"]
    for row in records[0].cases.select(columns).sort_by("index").to_pylist():
        case_id = row["case_id"]
        if case_id in trained_on or any(each.get(case_id) != row["content_hash"] for each in tables):
            continue
        answers = [_answer(record, case_id) for record in records]
        if len({(each.answer, each.correct, each.state) for each in answers}) > 1:
            found.append(DifferingCase(case_id=case_id, question=row["question"], gold=row["gold"], answers=answers))
    return sorted(found, key=lambda each: not each.outcome_differs)


def _contents(record: RunRecord) -> dict[str, str]:
    columns = (record.cases[name].to_pylist() for name in ("case_id", "content_hash"))
    return dict(zip(*columns, strict=True))


def _answer(record: RunRecord, case_id: str) -> RunAnswer:
    verdict = record.by_case.get(case_id)
    if verdict is None:
        return RunAnswer(answer=None, correct=None, state=record.without_verdict(case_id))
    state = "failed" if verdict.failed else "finished"
    return RunAnswer(answer=None if verdict.failed else verdict.answer, correct=verdict.correct, state=state)


def answer_words(found: RunAnswer) -> str:
    """Text of an answer and whether it is right.

    >>> answer_words(RunAnswer(answer="Yes", correct=True, state="finished"))
    'Yes (right)'
    """
    if found.state != "finished":
        return found.state
    right = {True: " (right)", False: " (wrong)", None: ""}[found.correct]
    return f"{'none' if found.answer is None else found.answer}{right}"


def differing_blocks(found: Sequence[DifferingCase], names: Sequence[str], most: int = MOST) -> Iterator[Block]:
    """Report blocks of differing cases: a table with a column for each run's answer.

    Args:
        found: see `differing_cases`.
        names: names of the runs.
        most: the number of cases listed at most.
    """
    outcome = sum(each.outcome_differs for each in found)
    if not found:
        yield Note("The runs give the same answers to all cases that they share.")
        return
    rows = [
        (
            each.case_id,
            _start(each.question),
            each.gold or "-",
            *map(answer_words, each.answers),
        )
        for each in found[:most]
    ]
    title = f"{number_of_cases(len(found))} with different answers, {outcome:,} of them right in some runs only"
    header = ("case", "question", "gold", *names)
    terse = Table(title, (header[0], *header[2:], header[1]), [(a, *rest, q) for a, q, *rest in rows], one_line=True)
    yield Table(title, header, rows, terse=terse, case_column=0)
    if len(found) > most:
        yield Note(f"{len(found) - most:,} more: --format json lists all", "dim")


def _start(question: str) -> str:
    line = visible_line(question)
    return line if len(line) <= _QUESTION else f"{line[: _QUESTION - 1].rstrip()}…"


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


@displays(RunComparison)
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
