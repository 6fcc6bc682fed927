"""Runs side by side: one row each, and each against the first on the cases that both scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from moot.actors.record.store.mirror import record_path
from moot.actors.record.tables import read_table
from moot.deploy.reading.detection.claims import Claim, ids_trained_on, read_claims
from moot.deploy.reading.detection.detection import Seconds, counted_claims
from moot.deploy.reading.detection.estimates import Estimate
from moot.deploy.reading.detection.figures import ClaimSet, macro_f1_difference
from moot.deploy.reading.record import latest_verdicts
from moot.deploy.reading.references import References
from moot.deploy.reading.summaries.paired import Paired, paired
from moot.deploy.reading.summaries.summary import summarise
from moot.deploy.reading.summaries.votes import VoteFigures
from moot.deploy.reading.text import (
    Interval,
)
from moot.deploy.reading.text import (
    cases as number_of_cases,
)
from moot.protocols.errors import ConfigError


class Row(BaseModel):
    """A run among others; the figures are those of its summary.

    Attributes:
        n: cases with a verdict that did not fail.
        tokens_per_case: tokens of a finished case, without what served only to measure.
        token_cost_x: the same relative to agent 0's openings.
        judge_passes_per_case: judgments of a finished case, without what served only to measure.
        flip_rate, judge_stability: by the audit's passes, the same for every protocol; None without an audit.
            `flip_rate_split` is over the cases with several answers, for a single one cannot flip.
        answered: of the `scored` verdicts, those with an answer; the others are wrong for `accuracy`, and
            `accuracy_answered` leaves them out.
        votes: of the verdicts that a vote of the agents decided, ties apart; None when none did.
        claims: how well claims are told apart; None for runs over anything else, or without one that counts.
        seconds: of a finished claim; None likewise.
        trained_on, group_trained_on: claims left out of these because the run's classifier was trained on them, or on
            others of their groups.
        macro_f1_vs_first: difference of the macro F1 on the claims that count in both; None for the first run itself,
            and for runs over anything else.
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
    seconds: Seconds | None
    trained_on: int
    group_trained_on: int
    macro_f1_vs_first: Estimate | None
    vs_first: Paired | None


class Comparison(BaseModel):
    """Several runs, in the order given; `warnings` say what makes them unequal, and what is pooled."""

    model_config = ConfigDict(frozen=True)

    schema_version: int
    rows: list[Row]
    warnings: list[str]


class _Cases:
    """A run's cases: which text each id stands for, and whether its verdict is right, where that may count."""

    def __init__(self, folder: str | Path) -> None:
        hashes = read_table(folder, "cases", ["content_hash"]).to_pylist()
        self.content: Mapping[str, str] = {row["case_id"]: row["content_hash"] for row in hashes}
        verdicts = latest_verdicts(folder)
        claims = read_claims(folder, verdicts, References.of(folder))
        left_out = ids_trained_on(claims)
        self.right: Mapping[str, bool | None] = {v.case_id: v.correct for v in verdicts if v.case_id not in left_out}
        self.claims: Mapping[str, Claim] = {claim.case_id: claim for claim in counted_claims(claims)}

    def claims_among(self, case_ids: Iterable[str]) -> dict[str, Claim]:
        """Those of the cases that are claims that count."""
        return {each: self.claims[each] for each in case_ids if each in self.claims}


def compare(folders: Sequence[str | Path]) -> Comparison:
    """Compare runs of the same cases.

    A case is paired when its id stands for the same text in both runs and both verdicts can be scored. Claims that a
    run's classifier was trained on, or on others of their groups, are in no pair and no accuracy.

    Raises:
        ConfigError: without a folder, or for runs without a common case.
        RecordError: when a folder holds no run or cannot be read.
    """
    if not folders:
        raise ConfigError("name at least one run to compare")
    folders = [record_path(folder) for folder in folders]
    summaries = [summarise(folder) for folder in folders]
    cases = [_Cases(folder) for folder in folders]
    first, warnings = cases[0], list[str]()
    if any(summary.accuracy_by_part for summary in summaries):
        warnings.append("accuracy is over all parts of the task together: `moot show RUN` has it part by part")
    rows = []
    for summary, each in zip(summaries, cases, strict=True):
        same_id = [case_id for case_id in first.content if case_id in each.content]
        shared = [case_id for case_id in same_id if first.content[case_id] == each.content[case_id]]
        if first.content and each.content and not same_id:
            raise ConfigError(f"{summary.run} and {summaries[0].run} have no case in common: nothing can be compared")
        if len(shared) < len(same_id):
            warnings.append(f"{summary.run}: {_other_texts(len(same_id) - len(shared))}; not paired")
        if len(shared) < max(len(first.content), len(each.content)):
            are = "is" if len(shared) == 1 else "are"
            only = f"only {number_of_cases(len(shared))} {are} shared with {summaries[0].run}"
            warnings.append(f"{summary.run}: {only}")
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
                answered=summary.answered,
                accuracy_answered=summary.accuracy_answered,
                accuracy_answered_interval=summary.accuracy_answered_interval,
                accuracy=summary.accuracy,
                accuracy_interval=summary.accuracy_interval,
                skip_rate=summary.skip_rate,
                rounds_mean=summary.debate_rounds_mean,
                tokens_per_case=summary.tokens_per_case,
                token_cost_x=summary.token_cost_x_without_audits,
                judge_passes_per_case=summary.judge_passes_per_case,
                judge_stability=summary.judge_stability_audit,
                flip_rate=summary.flip_rate_audit,
                votes=summary.votes,
                flip_rate_split=summary.flip_rate_audit_split,
                claims=None if summary.detection is None else summary.detection.whole,
                seconds=None if summary.detection is None else summary.detection.seconds,
                trained_on=0 if summary.detection is None else summary.detection.trained_on,
                group_trained_on=0 if summary.detection is None else summary.detection.group_trained_on,
                macro_f1_vs_first=None
                if each is first or not each.claims
                else macro_f1_difference(each.claims_among(shared), first.claims_among(shared)),
                vs_first=None if each is first else against,
            )
        )
    if len({str(row.models["agent"]) for row in rows if "agent" in row.models}) > 1:
        warnings.append("the runs' agents are not the same models")
    return Comparison(schema_version=summaries[0].schema_version, rows=rows, warnings=warnings)


def _other_texts(n: int) -> str:
    return "1 case id stands for another text" if n == 1 else f"{n:,} case ids stand for other texts"
