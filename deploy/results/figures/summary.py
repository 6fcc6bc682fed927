"""Summary of a run: its figures, their rows, and what `moot show RUN` shows."""

from __future__ import annotations

import os
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from moot.deploy.results.figures.accuracy import (
    PartAccuracy,
    RoundsAccuracy,
    ShortAnswers,
    VoteFigures,
    accuracies,
    audit_difference,
    debate_shares,
    short_answer_rows,
    short_answers,
    vote_figures,
    vote_rows,
)
from moot.deploy.results.figures.claim_blocks import detection_blocks, detection_rows
from moot.deploy.results.figures.claims import Detection, ids_trained_on, measure_detection, read_claims
from moot.deploy.results.figures.confidence import (
    ConfidenceFigures,
    Evaluation,
    confidence_figures,
    confidence_rows,
    consensus_verdicts,
    evaluate_distributions,
    evaluation_rows,
)
from moot.deploy.results.figures.costs import (
    StoppedEarly,
    costs_of_finished,
    relative_cost,
    run_totals,
    stopped_early,
)
from moot.deploy.results.figures.gate import GateCoverage, UntestedGates, gate_coverage, run_warnings, untested_gates
from moot.deploy.results.figures.judges import JudgingSummary, judge_figures, judging_tables, summarise_judging
from moot.deploy.results.figures.label_audit import contradicted, converged
from moot.deploy.results.figures.raters import TraitScores, score_blocks, trait_scores
from moot.deploy.results.figures.replies import ModelReplies, model_replies, replies_words, reply_blocks
from moot.deploy.results.figures.subjects import (
    PanelVerdictCounts,
    RoleReasoning,
    count_panel_verdicts,
    panel_verdict_rows,
    reasoning_by_role,
    reasoning_rows,
)
from moot.deploy.results.glossary import named_ending
from moot.deploy.results.record import Flags, ReplyColumns, RunRecord, VerdictRow, is_counted, once_per_record
from moot.deploy.results.report.blocks import Block, Heading, Note, Pairs
from moot.deploy.results.report.display import DisplayMixin, FrozenModel, displays
from moot.deploy.results.report.render import banner
from moot.deploy.results.run_info import RunInfo
from moot.deploy.results.stats import PairedComparison, paired_sentence
from moot.deploy.results.text import (
    Interval,
    calls,
    cases,
    count,
    counts_in_words,
    mean_of,
    number,
    percent,
    times,
)
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
        scored_groups: number of groups of their cases, see `moot.deploy.results.references.case_groups`; None if
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
            `moot.deploy.results.figures.label_audit`; None if no verdict allows this comparison.
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


_WIDEST = 100
"""Characters of a line of a sentence in a cell."""


def summary_rows(summary: Summary) -> list[tuple[str, str]]:
    """Rows of the summary, as name and text, in display order.

    A figure without an instance in the run (a debated case, an answer judged on several variants) has no row.
    """
    rows = [
        ("protocol", summary.protocol or "unknown"),
        *([("preset", summary.preset)] if summary.preset else []),
        ("task", summary.task or "unknown"),
        *((f"model: {role}", ", ".join(names)) for role, names in summary.models.items()),
        ("cases", _cases(summary)),
    ]
    return rows + (_debate_rows(summary) if summary.judging is None else []) + _cost_rows(summary)


def _debate_rows(summary: Summary) -> list[tuple[str, str]]:
    """Rows of debates; a run that judges replies has neither answers nor rounds."""
    rows = _answer_rows(summary)
    if summary.votes is not None:
        rows += vote_rows(summary.votes)
    if summary.short_answers is not None:
        rows += short_answer_rows(summary.short_answers)
    if summary.rulings is not None:
        rows += panel_verdict_rows(summary.rulings)
    if summary.reasoning is not None:
        rows += reasoning_rows(summary.reasoning)
    if summary.skip_rate is not None:
        rows += _gate_rows(summary, summary.skip_rate)
    if summary.evaluation is not None:
        rows += evaluation_rows(summary.evaluation)
    if summary.labels_questioned is not None:
        where = ", see moot show --questioned" if summary.labels_questioned else ""
        rows.append(("labels to review", f"{summary.labels_questioned:,}{where}"))
    rows.append(("rounds per case", number(summary.debate_rounds_mean, 2)))
    if summary.debate_rounds_mean_debated is not None:
        rows.append(("rounds per debated case", number(summary.debate_rounds_mean_debated, 2)))
    rows += [
        (f"accuracy, rounds: {each.rounds}", percent(each.accuracy, each.interval, each.scored))
        for each in summary.accuracy_by_rounds or ()
        if each.scored
    ]
    rows += [*_judge_rows(summary), *confidence_rows(summary.confidence or ())]
    if summary.audit is not None:
        rows.append(("skipped - debated, audit", paired_sentence(summary.audit, "if skipped", "if debated")))
    return rows


def _judge_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    kind = f"; {', '.join(summary.audit_variants)} variants" if summary.audit_variants else ""
    for of, audit, more in (("", "", ""), (", audit", "_audit", kind)):
        stability, of_stability = _judged(summary, f"judge_stability{audit}")
        flips, of_flips = _judged(summary, f"flip_rate{audit}")
        split, of_split = _judged(summary, f"flip_rate{audit}_split")
        if stability is not None or flips is not None:
            yield f"judge stability{of}", number(stability) + _of_finished(summary, of_stability) + more
            apart = "" if of_split == of_flips else f"; {percent(split, n=of_split)} where answers differ"
            yield f"judge flip rate{of}", percent(flips) + _of_finished(summary, of_flips) + apart
    if summary.judgments_at_odds:
        of = f"{summary.judgments_at_odds:,} of {summary.judgments_read or 0:,}"
        yield "contradictory judgments", f"{of}: their stated support contradicts their score"


def _judged(summary: Summary, name: str) -> tuple[float | None, int | None]:
    """A figure of the judges, and the number of its cases."""
    return getattr(summary, name), getattr(summary, f"{name}_cases")


def _of_finished(summary: Summary, n: int | None) -> str:
    return f" (n = {count(n)} of {cases(summary.finished)})"


def _answer_rows(summary: Summary) -> list[tuple[str, str]]:
    """Rows of the accuracy; where answers are missing (they count as wrong), also coverage and accuracy of the rest."""
    scored = percent(summary.accuracy, summary.accuracy_interval, summary.scored, summary.scored_groups)
    named = "a rater's score given" if summary.scores else "accuracy"
    rows = list[tuple[str, str]]()
    if summary.scored or summary.detection is not None:  # claims have gold labels, also if none is counted
        rows.append((f"{named}, all parts" if summary.accuracy_by_part else named, scored))
    for each in (part for part in summary.accuracy_by_part or () if part.scored):
        more = "" if each.answered == each.scored else f"; {each.answered:,} answered"
        rows.append((f"{named}, {each.part or 'no part'}", percent(each.accuracy, each.interval, each.scored) + more))
    if summary.answered < summary.scored:
        share = percent(summary.accuracy_answered, summary.accuracy_answered_interval, summary.answered)
        rows += [("answered", f"{summary.answered:,} of {summary.scored:,}"), (f"{named} of answered", share)]
    if summary.detection is not None:
        rows += detection_rows(summary.detection, summary.tokens_per_case)
    return rows


def _gate_rows(summary: Summary, skip_rate: float) -> Iterator[tuple[str, str]]:
    yield "skip rate", percent(skip_rate)
    if (without := summary.gate_untested) is not None:
        yield "gate tests not made", f"{without.words}; {without.skipped:,} of these cases were skipped"
    if summary.gate_coverage is not None:
        yield "gate's probabilities", summary.gate_coverage.words
    if summary.scored_skipped:
        skipped = percent(summary.accuracy_skipped, summary.accuracy_skipped_interval, summary.scored_skipped)
        yield "accuracy, skipped", skipped
    if summary.scored_debated:
        debated = percent(summary.accuracy_debated, summary.accuracy_debated_interval, summary.scored_debated)
        yield "accuracy, debated", debated


def _wrapped(sentence: str) -> str:
    """A sentence on lines that leave the table narrow; a command, between backquotes, stays whole to be copied."""
    whole = re.sub("`.*?`", lambda command: command[0].replace(" ", "\N{NO-BREAK SPACE}"), sentence)
    lines = textwrap.wrap(whole, _WIDEST, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _cost_rows(summary: Summary) -> list[tuple[str, str]]:
    without_usage = summary.calls_without_usage
    at_least = "at least " if without_usage and summary.tokens_paid is not None else ""
    reused = f"{count(summary.tokens_reused)} in {count(summary.replies_reused)} replies"
    rows = [
        ("tokens paid", f"{at_least}{count(summary.tokens_paid)} in {calls(summary.calls)}"),
        ("tokens reused", reused if summary.replies_reused else "0"),
        ("tokens repaid", f"at most {count(summary.tokens_repaid)}" if summary.tokens_repaid else "0"),
    ]
    rows += _uncertain_rows(summary)
    if summary.cost_usd is None or summary.cost_usd > 0.0:
        rows.append(
            ("cost", "unknown: no price" if summary.cost_usd is None else f"{at_least}{summary.cost_usd:.4f} USD")
        )
    if summary.token_cost_x is not None or without_usage:
        apart = " (of the cases without stopped replies)" if summary.stopped_early else ""
        rows.append(("cost, one agent's answer = 1", times(summary.token_cost_x) + apart))
    if without_usage:
        rows.insert(1, ("calls without usage", count(without_usage)))
    if summary.token_cost_x_without_audits != summary.token_cost_x:
        rows.append(("cost without measurements", times(summary.token_cost_x_without_audits)))
    if summary.stopped_by is not None:
        rows.append(("stopped by", _wrapped(summary.stopped_by)))
    rows.append(("wall time", _wall_time(summary)))
    if summary.how:
        rows.append(("how", "\n".join(f"{count(n)}: {named_ending(how)}" for how, n in summary.how.items())))
    if summary.failures:
        rows.append(("failed cases", counts_in_words(summary.failures)))
    if summary.asks_failed:
        rows.append(("failed asks", counts_in_words(summary.asks_failed)))
    if (stopped := summary.stopped_early) is not None:
        used, saved = count(stopped.tokens_used_estimate), count(stopped.tokens_saved_estimate)
        words = f"{count(stopped.replies)} replies, estimated: {used} tokens used, {saved} saved"
        rows.append(("stopped early", words + (f", {count(stopped.unknown)} unknown" if stopped.unknown else "")))
    rows.append(("replies", replies_words(summary.model_replies)))
    repaired = {name: n for name, n in summary.replies.items() if name in ("repaired", "reasked")}
    if repaired:
        rows.append(("repaired replies", counts_in_words(repaired)))
    return rows


def _wall_time(summary: Summary) -> str:
    """Wall time over all sessions; if the end of one is not recorded, the start of that session."""
    if summary.wall_s is not None:
        return f"{summary.wall_s:,.1f} s"
    since = summary.wall_unknown_since
    return "unknown" if since is None else f"unknown: the record has no end of the session that started at {since}"


def _uncertain_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """Rows of the usage that servers did not report, or reported implausibly."""
    if summary.attempts_unconfirmed:
        attempts = count(summary.attempts_unconfirmed)
        yield "tokens unconfirmed", f"0 to {count(summary.tokens_unconfirmed[1])} in {attempts} attempts"
    if summary.usage_estimated:
        yield "usage estimated", f"for {count(summary.usage_estimated)} replies whose reported tokens were too few"
    if summary.unsettled:
        written = {"tokens": "{:,.0f} tokens", "usd": "{:.4f} USD"}
        amounts = [form.format(summary.unsettled[key]) for key, form in written.items() if key in summary.unsettled]
        yield "counted as spent", f"at most {' and '.join(amounts)} of killed sessions, not in the record"


def _cases(summary: Summary) -> str:
    parts = [f"{summary.finished:,} finished", f"{summary.failed:,} failed"]
    if summary.open:
        waits = "waits" if summary.parked == 1 else "wait"
        waiting = f", {summary.parked:,} of them {waits} for a person" if summary.parked else ""
        withdrawn = f", {summary.withdrawn:,} of them withdrawn" if summary.withdrawn else ""
        parts.append(f"{summary.open:,} without verdict{waiting}{withdrawn}")
    if summary.reused:
        parts.append(f"{summary.reused:,} from earlier sessions")
    return f"{summary.cases:,}: {', '.join(parts)}"


@displays(Summary)
def summary_blocks(summary: Summary, baselines: Sequence[Block] = ()) -> list[Block]:
    """Report blocks of a summary: warnings, figures, and tables."""
    return [
        *banner(summary.simulated),
        Heading(f"Run {summary.run}", 1),
        *(Note(f"warning: {line}", "warning") for line in summary.warnings),
        Pairs(summary_rows(summary)),
        *baselines,
        *score_blocks(summary.scores or ()),
        *([] if summary.detection is None else detection_blocks(summary.detection)),
        *reply_blocks(summary.model_replies),
        *([] if summary.judging is None else judging_tables(summary.judging)),
        Note(f"record: {summary.run}", "dim"),
    ]
