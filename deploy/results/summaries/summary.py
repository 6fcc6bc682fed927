"""Summary of a run, computed from its record; the rendering is in `moot.deploy.results.show`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from moot.actors.record.schema import CaseKey
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.claims import ids_trained_on, read_claims
from moot.deploy.results.detection.detection import Detection, measure_detection
from moot.deploy.results.record.readers import is_counted
from moot.deploy.results.record.reply_columns import Flags, ReplyColumns
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_info import RunInfo
from moot.deploy.results.record.run_record import RunRecord, once_per_record
from moot.deploy.results.report.blocks import Block
from moot.deploy.results.report.display import DisplayMixin
from moot.deploy.results.summaries.accuracy import (
    PairedComparison,
    PartAccuracy,
    RoundsAccuracy,
    ShortAnswers,
    VoteFigures,
    audit_difference,
    short_answers,
    vote_figures,
)
from moot.deploy.results.summaries.case_costs import CaseCost, CasePrice, case_costs, relative_cost
from moot.deploy.results.summaries.consensus import consensus_verdicts
from moot.deploy.results.summaries.costs import StoppedEarly, run_totals, stopped_early
from moot.deploy.results.summaries.debated import accuracies, debate_shares
from moot.deploy.results.summaries.evaluation import (
    ConfidenceFigures,
    Evaluation,
    confidence_figures,
    evaluate_distributions,
)
from moot.deploy.results.summaries.gate_tests import (
    GateCoverage,
    UntestedGates,
    gate_coverage,
    run_warnings,
    untested_gates,
)
from moot.deploy.results.summaries.judges import judge_figures, verdict_sources
from moot.deploy.results.summaries.judging import JudgingSummary, summarise_judging
from moot.deploy.results.summaries.label_audit import contradicted, converged
from moot.deploy.results.summaries.model_replies import ModelReplies, model_replies
from moot.deploy.results.summaries.panel_verdicts import (
    PanelVerdictCounts,
    RoleReasoning,
    count_panel_verdicts,
    reasoning_by_role,
)
from moot.deploy.results.summaries.scores import TraitScores, trait_scores
from moot.deploy.results.text import Interval, mean_of
from moot.protocols.case import is_shared_id
from moot.protocols.rubrics.events import ReplyAssessed

_OF_THE_RUN = ["schema_version", "task", "protocol", "preset", "models", "simulated", "unsettled"]
_OF_THE_RUN += ["wall_s", "wall_unknown_since"]


class Summary(DisplayMixin, FrozenModel):
    """Summary of a run. The latest attempt with a verdict counts for each case; None is unknown, never 0.

    Accuracies cover the verdicts that can be scored (not failed, with a gold label); a verdict without an answer counts
    as wrong. Failed cases are counted separately and never as wrong. No accuracy, paired test or evaluation includes
    claims that the run's classifier was trained on, or claims of their groups. For intervals, 95 %, see
    `share_over_cases`.

    Attributes:
        run: the run's folder.
        models: model names by role family.
        simulated: whether any answer comes from the simulated model.
        cases: number of cases of the run, or those seen so far if that is unknown; `finished + failed + open`.
        open: cases without a verdict; `parked` of them wait for a person, and `withdrawn` of them are recorded as
            withdrawn, which earlier versions did not record.
        reused: cases that already had a verdict before the last session.
        answered: number of scored verdicts with an answer; `accuracy_answered` is the accuracy of these.
        accuracy: share of right answers over all parts of the task; `accuracy_by_part` is None for one part.
        scored: number of verdicts that `accuracy` covers; likewise `scored_skipped` and `scored_debated`.
        scored_groups: number of groups of their cases, see `moot.deploy.results.record.references.case_groups`; None if
            all are independent.
        skip_rate: share of the finished cases with a gate whose debate was skipped; None without a gate.
        gate_untested: gates that could not make a test because a value was unknown; None without any.
        gate_coverage: number of openings whose probability the gates knew; None if each knew all, or none.
        debate_rounds_mean: mean over all finished cases; `debate_rounds_mean_debated` over the debated ones.
        judge_stability: 1 - Var over the evidence variants, of a case the mean over its candidates with at least two
            scored variants, then the mean over the `judge_stability_cases` that have any. Of the protocol's own passes,
            which have several variants only where answers differ; `judge_stability_audit` is that of the audit's
            passes over every case, which are the same for every protocol.
        flip_rate: share of variants that alone would choose another winner than most variants, mean over the
            `flip_rate_cases`; `flip_rate_split` covers those with at least two answers, because a single answer cannot
            flip. Likewise for the audit's.
        audit_variants: kinds of variants of the audit's evidence: `subset` or `paraphrase`; empty without an audit.
        judgments_at_odds: number of judgments whose `support` contradicts their own score, among the `judgments_read`
            of the protocol; None without any.
        judge_passes_per_case: judgments per finished case, without measurement-only ones.
        accuracy_by_rounds: accuracy of the debated cases by number of rounds; None if all debates have the same length.
        confidence: calibration of the verdicts' confidences, by source; None if unknown.
        rulings: verdicts of the panels that judged debates on subjects; None if there are none.
        reasoning: reasoning quality by role; None if it was not judged.
        judging: scores by judge and pass and the judges' agreement, for a run that only judges replies; None for any
            other.
        labels_questioned: number of cases whose label a converged, confident consensus contradicts, see
            `moot.deploy.results.summaries.label_audit`; None if no verdict allows this comparison.
        evaluation: quality of the distributions; None if none is a consensus that can be compared with a label.
        scores: agreement of scores of texts with the human raters, by trait; None for a run that scores no texts.
        detection: figures of claim checking; None for other tasks. An open claim counts as wrong, as in `accuracy`.
        votes: figures of the verdicts that a vote of the agents decided, with ties separate; None if no vote decided.
        short_answers: similarity of the answers to the accepted ones; None if there are no short answers.
        tokens_paid: tokens of every reply that this run paid for, in any attempt; a lower bound if
            `calls_without_usage` is not 0.
        tokens_reused: tokens of the `replies_reused` replies from another run, by `--reuse` or `replay/RUN`; a lower
            bound if the usage of one is unknown, None if that of all is.
        tokens_repaid: upper bound of the tokens paid again after a kill; see `costs.tokens_repaid`.
        tokens_unconfirmed: lower and upper bound of the tokens of the `attempts_unconfirmed` attempts that may have
            been billed although the server reported no usage.
        unsettled: amounts that killed sessions had reserved beyond the record, by budget (`tokens`, `usd`); the run's
            budgets count them as spent. Known once the run was resumed; empty without any, or without a budget.
        cost_usd: cost of the reported usage; None if the price of a model is unknown.
        stopped_by: the reason why the last session stopped by itself; None if it did not.
        calls: number of replies that this run paid for.
        usage_estimated: replies whose server reported fewer tokens than their texts must have; an estimate is used.
        token_cost_x: all tokens of the finished cases divided by the tokens of agent 0's openings on the same cases;
            `token_cost_x_without_audits` excludes measurement-only replies.
        tokens_per_case: tokens per finished case, without measurement-only replies.
        wall_s: seconds over all sessions; None if the time of one is unknown (a killed session).
        wall_unknown_since: start of the first session without a recorded end; None if there is none.
        how: verdicts by how they were reached, including failed ones.
        failures: failed cases by kind.
        asks_failed: asks without a usable reply by kind; `replies`: replies by outcome; both of the attempts that
            count.
        model_replies: reply counts by role and template.
        warnings: warnings about the replies and the gate, each with a remedy.
        stopped_early: replies that were stopped early, with estimates; None if there are none.
        audit: comparison of the skipped answers (first) with the debated ones, if skipped cases were also debated
            (`audit_skipped`, `both_branches`).
    """

    schema_version: int
    run: str
    task: str | None
    protocol: str | None
    preset: str | None
    models: dict[str, list[str]]
    simulated: bool
    cases: int
    finished: int
    failed: int
    open: int
    parked: int
    withdrawn: int = 0
    reused: int
    accuracy: float | None
    accuracy_interval: Interval | None
    scored: int
    scored_groups: int | None = None
    answered: int
    accuracy_answered: float | None
    accuracy_answered_interval: Interval | None
    accuracy_by_part: list[PartAccuracy] | None
    skip_rate: float | None
    gate_untested: UntestedGates | None = None
    gate_coverage: GateCoverage | None = None
    accuracy_skipped: float | None
    accuracy_skipped_interval: Interval | None
    scored_skipped: int
    accuracy_debated: float | None
    accuracy_debated_interval: Interval | None
    scored_debated: int
    debate_rounds_mean: float | None
    debate_rounds_mean_debated: float | None
    judge_stability: float | None
    judge_stability_cases: int | None = None
    flip_rate: float | None
    flip_rate_cases: int | None = None
    flip_rate_split: float | None
    flip_rate_split_cases: int | None = None
    judge_stability_audit: float | None
    judge_stability_audit_cases: int | None = None
    flip_rate_audit: float | None
    flip_rate_audit_cases: int | None = None
    flip_rate_audit_split: float | None
    flip_rate_audit_split_cases: int | None = None
    audit_variants: list[str] = Field(default_factory=list)
    judgments_read: int | None
    judgments_at_odds: int | None
    judge_passes_per_case: float | None
    accuracy_by_rounds: list[RoundsAccuracy] | None
    confidence: list[ConfidenceFigures] | None
    rulings: PanelVerdictCounts | None
    reasoning: list[RoleReasoning] | None
    judging: JudgingSummary | None
    labels_questioned: int | None
    evaluation: Evaluation | None
    scores: list[TraitScores] | None
    votes: VoteFigures | None
    short_answers: ShortAnswers | None
    detection: Detection | None
    tokens_paid: int | None
    tokens_reused: int | None
    replies_reused: int
    tokens_repaid: int
    tokens_unconfirmed: tuple[int, int]
    attempts_unconfirmed: int
    unsettled: dict[str, float]
    cost_usd: float | None
    stopped_by: str | None
    calls: int
    calls_without_usage: int
    usage_estimated: int
    token_cost_x: float | None
    token_cost_x_without_audits: float | None
    tokens_per_case: float | None
    wall_s: float | None
    wall_unknown_since: str | None
    how: dict[str, int]
    failures: dict[str, int]
    asks_failed: dict[str, int]
    replies: dict[str, int]
    model_replies: list[ModelReplies]
    warnings: list[str]
    stopped_early: StoppedEarly | None
    audit: PairedComparison | None

    def display_name(self) -> str:
        """See `DisplayMixin`."""
        return self.run

    def report_blocks(self) -> list[Block]:
        """See `DisplayMixin`."""
        from moot.deploy.results.show import summary_blocks

        return summary_blocks(self)


def summarise(folder: str | os.PathLike[str]) -> Summary:
    """Summary of a run, finished or not.

    Raises:
        RecordError: the folder has no run or cannot be read.
    """
    return record_summary(folder)


@once_per_record
def record_summary(record: RunRecord) -> Summary:
    """Summary of a record, computed once per record."""
    facts, verdicts, references, replies = record.info, record.verdicts, record.references, record.replies
    counted_replies = _are_counted(replies, record)
    finished = [verdict for verdict in verdicts if not verdict.failed]
    costs = record.once(costs_of_finished)
    claims = read_claims(record, {key: cost.method for key, cost in costs.items()})
    trained_on = ids_trained_on(claims)
    counted = [verdict for verdict in finished if verdict.case_id not in trained_on]
    cases = {*record.cases["case_id"].to_pylist(), *record.by_case}
    parked = set(record.events_of_kind("parked")["case_id"].to_pylist()) & cases.difference(record.by_case)
    total = max(len(cases), facts.cases or 0)
    shared = replies.known_tokens[replies.case.that(is_shared_id) & replies.has_tokens]
    return Summary(
        **{name: getattr(facts, name) for name in _OF_THE_RUN},
        run=facts.name,
        cases=total,
        finished=len(finished),
        failed=len(verdicts) - len(finished),
        open=total - len(verdicts),
        parked=len(parked - record.withdrawn),
        withdrawn=len(record.withdrawn),
        reused=_reused(facts, verdicts),
        how=_counted(verdict.how or "unknown" for verdict in verdicts),
        failures=_counted(verdict.failure or "unknown" for verdict in verdicts if verdict.failed),
        asks_failed=_named(replies.failure.counted(counted_replies & replies.is_failed)),
        replies=_named(replies.outcome.counted(counted_replies)),
        model_replies=model_replies(record),
        warnings=run_warnings(record),
        audit=audit_difference(record, counted),
        judge_passes_per_case=mean_of(cost.judge_passes for cost in costs.values()),
        confidence=confidence_figures(record, counted),
        **debate_shares(record, finished),
        gate_untested=untested_gates(record),
        gate_coverage=gate_coverage(record),
        **accuracies(record, counted),
        **judge_figures(record, finished),
        **run_totals(replies, record.bookkeeping, facts.prices),
        **relative_cost(costs.values(), int(shared.sum())),
        stopped_early=stopped_early(replies),
        **_consensus(record, trained_on),
        rulings=count_panel_verdicts(record, finished),
        reasoning=reasoning_by_role(record, {verdict.key for verdict in finished}),
        judging=summarise_judging(record) if _judges_only(record) else None,
        scores=trait_scores(record, finished),
        votes=vote_figures(record, counted),
        short_answers=short_answers(finished, references),
        detection=measure_detection(claims) if claims else None,
        stopped_by=facts.stopped_by or None,
    )


def _are_counted(replies: ReplyColumns, record: RunRecord) -> Flags:
    """Whether each reply is of an attempt that counts."""
    counted = is_counted(replies.places, record.verdict_table)
    return np.ones(len(replies), np.bool_) if counted is None else np.asarray(counted.to_numpy(), np.bool_)


def costs_of_finished(record: RunRecord) -> dict[CaseKey, CaseCost]:
    """Token costs of the finished debates."""
    return {key: tokens for key, (tokens, _) in record.once(_costs).items()}


def prices_of_finished(record: RunRecord) -> dict[CaseKey, CasePrice]:
    """Costs of the finished debates in USD."""
    return {key: usd for key, (_, usd) in record.once(_costs).items()}


def _costs(record: RunRecord) -> dict[CaseKey, tuple[CaseCost, CasePrice]]:
    finished = [verdict.key for verdict in record.verdicts if not verdict.failed]
    return case_costs(record.replies, finished, verdict_sources(record), record.info.prices)


def _judges_only(record: RunRecord) -> bool:
    """Whether the run only judges: its cases are replies that were made elsewhere."""
    return record.has_events(ReplyAssessed) and record.cases["judged"].null_count < record.cases.num_rows


def _consensus(record: RunRecord, trained_on: Collection[str]) -> dict[str, Any]:
    """Evaluation and label audit of consensus verdicts, without cases that the classifier was trained on."""
    verdicts = [verdict for verdict in consensus_verdicts(record) if verdict.case_id not in trained_on]
    if not verdicts:
        return {"labels_questioned": None, "evaluation": None}
    compared = converged(verdicts)
    columns = (record.cases[name].to_pylist() for name in ("case_id", "gold", "labels"))
    rows = [row for row in zip(*columns, strict=True) if row[0] not in trained_on]
    labelled = sum(gold in (labels or ()) for _, gold, labels in rows)
    return {
        "labels_questioned": len(contradicted(compared)) if compared else None,
        "evaluation": evaluate_distributions(verdicts, labelled, record.references.group),
    }


def _named(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by name, sorted; an empty name becomes `unknown`."""
    named = Counter[str]()
    for name, n in counts.items():
        named[name or "unknown"] += n
    return dict(sorted(named.items()))


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _reused(facts: RunInfo, verdicts: Sequence[VerdictRow]) -> int:
    started = facts.last_started_at
    return sum(verdict.at < started for verdict in verdicts) if started is not None and facts.owners > 1 else 0
