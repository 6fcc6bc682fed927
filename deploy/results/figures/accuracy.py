"""Accuracy of verdicts: overall, by part of the task, by rounds, of votes, and of short answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from moot.actors.record.schema import CaseKey
from moot.deploy.results.record import EventPlace, RunRecord, VerdictRow
from moot.deploy.results.references import References
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.stats import GroupOf, PairedComparison, compare_paired, share_over_cases
from moot.deploy.results.text import Interval, mean_of, number, percent
from moot.protocols.selene.events import BranchesCompared, SkipAudited, VotesCounted
from moot.protocols.tasks.scoring import accepted_answers
from moot.protocols.tasks.short_answers import token_f1


def audit_difference(record: RunRecord, finished: Iterable[VerdictRow]) -> PairedComparison | None:
    """Paired comparison of the skipped cases' answers with their audited debates; None without such debates.

    The settings `audit_skipped` and `both_branches` run them; with both branches, only cases that the gate skipped
    count.
    """
    gold = {verdict.key: verdict.gold for verdict in finished}
    both = [each for each in record.typed_events(BranchesCompared) if each[1].verdict_from == "skip"]
    audited: list[tuple[EventPlace, SkipAudited | BranchesCompared]] = [*record.typed_events(SkipAudited), *both]
    audits = [(event, found) for event, found in audited if event.key in gold]
    correct = record.references.correct
    skipped = [correct(event.case_id, found.skipped_answer, gold[event.key]) for event, found in audits]
    debated = [correct(event.case_id, found.debated_answer, gold[event.key]) for event, found in audits]
    groups = [record.references.group(event.case_id) for event, _ in audits]
    return compare_paired(skipped, debated, groups) if audits else None


class PartAccuracy(FrozenModel):
    """Accuracy in one part of a task, such as one essay set.

    Attributes:
        part: the part's name; empty for cases without a part.
        accuracy: in [0, 1]; a verdict without an answer is wrong; None when nothing can be scored.
        interval: 95 % interval, see `share_over_cases`.
        scored: number of scored verdicts.
        answered: number of scored verdicts with an answer.
    """

    part: str
    accuracy: float | None
    interval: Interval | None
    scored: int
    answered: int


class RoundsAccuracy(FrozenModel):
    """Accuracy of the verdicts after a number of rounds.

    Attributes:
        accuracy, interval, scored: as in `PartAccuracy`.
    """

    rounds: int
    accuracy: float | None
    interval: Interval | None
    scored: int


def share(outcomes: Iterable[tuple[str, bool | None]], group_of: GroupOf) -> tuple[float | None, Interval | None, int]:
    """Share of true outcomes among the known ones, with its interval (95 %, see `share_over_cases`) and their number.

    Args:
        outcomes: pairs of case and outcome; None is unknown.
        group_of: cases of a group are dependent.
    """
    known = [(case_id, float(outcome)) for case_id, outcome in outcomes if outcome is not None]
    if not known:
        return None, None, 0
    return fmean(value for _, value in known), share_over_cases(known, group_of), len(known)


def accuracy_of(verdicts: Sequence[VerdictRow], references: References) -> tuple[float | None, Interval | None, int]:
    """Accuracy, with its interval, and the number of scored verdicts."""
    return share(((verdict.case_id, verdict.correct) for verdict in verdicts), references.group)


def answered(verdicts: Iterable[VerdictRow]) -> list[VerdictRow]:
    """Verdicts with an answer."""
    return [verdict for verdict in verdicts if verdict.answer is not None]


def accuracy_by_part(finished: Sequence[VerdictRow], references: References) -> list[PartAccuracy] | None:
    """Accuracy by part, in order of first occurrence; None where all cases are of one part."""
    parts = dict.fromkeys(references[verdict.case_id].part for verdict in finished)
    if len(parts) < 2:
        return None
    rows = []
    for part in parts:
        verdicts = [verdict for verdict in finished if references[verdict.case_id].part == part]
        value, interval, n = accuracy_of(verdicts, references)
        _, _, named = accuracy_of(answered(verdicts), references)
        rows.append(PartAccuracy(part=part, accuracy=value, interval=interval, scored=n, answered=named))
    return rows


def accuracy_by_rounds(debated: Sequence[VerdictRow], references: References) -> list[RoundsAccuracy] | None:
    """Accuracy by number of rounds, ascending (SELENE's table 4); None where all debates have the same number."""
    lengths = sorted({verdict.rounds for verdict in debated})
    if len(lengths) < 2:
        return None
    rows = []
    for rounds in lengths:
        value, interval, n = accuracy_of([verdict for verdict in debated if verdict.rounds == rounds], references)
        rows.append(RoundsAccuracy(rounds=rounds, accuracy=value, interval=interval, scored=n))
    return rows


class VoteFigures(FrozenModel):
    """Figures of the verdicts decided by a vote, with 95 % intervals, see `share_over_cases`.

    Attributes:
        n: finished verdicts decided by a vote.
        tied: ties among them, decided by a tie-break.
        accuracy_untied: accuracy without ties, in [0, 1]; None when nothing can be scored.
        scored_untied: number of scored verdicts that it covers.
        accuracy_strict: accuracy if every tie counts as wrong (a strict plurality is required).
        scored: number of scored verdicts.
    """

    n: int
    tied: int
    accuracy_untied: float | None
    accuracy_untied_interval: Interval | None
    scored_untied: int
    accuracy_strict: float | None
    accuracy_strict_interval: Interval | None
    scored: int


def vote_figures(record: RunRecord, finished: Sequence[VerdictRow]) -> VoteFigures | None:
    """Vote figures of a run; None without verdicts decided by a vote, and for records without `vote` events."""
    ties = {(event.key, event.path): bool(vote.tied) for event, vote in record.typed_events(VotesCounted)}
    voted = [verdict for verdict in finished if _place(verdict) in ties]
    if not voted:
        return None
    references = record.references
    tied = {verdict.key for verdict in voted if ties[_place(verdict)]}
    untied, ends_untied, scored_untied = accuracy_of([each for each in voted if each.key not in tied], references)
    outcomes = ((v.case_id, None if v.correct is None else v.correct and v.key not in tied) for v in voted)
    strict, ends, scored = share(outcomes, references.group)
    return VoteFigures(
        n=len(voted),
        tied=len(tied),
        accuracy_untied=untied,
        accuracy_untied_interval=ends_untied,
        scored_untied=scored_untied,
        accuracy_strict=strict,
        accuracy_strict_interval=ends,
        scored=scored,
    )


def _place(verdict: VerdictRow) -> tuple[CaseKey, str]:
    """Key and path of the vote that decides a verdict, if a vote does."""
    return verdict.key, "vote/consensus" if verdict.how == "skipped" else "vote"


def vote_rows(found: VoteFigures) -> list[tuple[str, str]]:
    """Rows of the vote figures, as name and text; accuracies only where a vote was a tie."""
    rows = [("tied votes", f"{found.tied:,} of {found.n:,}")]
    if found.tied:
        untied = percent(found.accuracy_untied, found.accuracy_untied_interval, found.scored_untied)
        strict = percent(found.accuracy_strict, found.accuracy_strict_interval, found.scored)
        rows += [("accuracy without ties", untied), ("accuracy, ties as wrong", strict)]
    return rows


class ShortAnswers(FrozenModel):
    """Exact match and token F1 of short answers, over the finished cases with an accepted answer.

    For 95 % intervals see `share_over_cases`.

    Attributes:
        n: number of cases.
        exact_match: share of answers that equal an accepted one after normalisation.
        token_f1: mean over the cases of the best F1 with an accepted answer, in [0, 1]; a missing answer has 0.
    """

    n: int
    exact_match: float
    exact_match_interval: Interval | None
    token_f1: float
    token_f1_interval: Interval | None


def short_answers(finished: Sequence[VerdictRow], references: References) -> ShortAnswers | None:
    """Exact match and token F1 of a run's short answers; None when none can be scored."""
    exact, f1_scores = list[tuple[str, float]](), list[tuple[str, float]]()
    for verdict in finished:
        reference = references[verdict.case_id]
        if reference.scoring != "short answer" or verdict.correct is None:
            continue
        exact.append((verdict.case_id, float(verdict.correct)))
        f1 = token_f1(verdict.answer or "", accepted_answers(verdict.gold or "", reference))
        f1_scores.append((verdict.case_id, f1))
    if not exact:
        return None
    return ShortAnswers(
        n=len(exact),
        exact_match=fmean(right for _, right in exact),
        exact_match_interval=share_over_cases(exact, references.group),
        token_f1=fmean(score for _, score in f1_scores),
        token_f1_interval=share_over_cases(f1_scores, references.group),
    )


def short_answer_rows(found: ShortAnswers) -> list[tuple[str, str]]:
    """Rows of the short-answer figures, as name and text."""
    ends = found.token_f1_interval
    interval = f" [{number(ends[0])}, {number(ends[1])}]" if ends else ""
    return [
        ("exact match", percent(found.exact_match, found.exact_match_interval, found.n)),
        ("token F1", f"{number(found.token_f1)}{interval} (n = {found.n:,})"),
    ]


def skipped_and_debated(record: RunRecord, finished: Sequence[VerdictRow]) -> tuple[list[VerdictRow], list[VerdictRow]]:
    """Verdicts whose debate a gate skipped, and verdicts of debates; a single answer is neither.

    Args:
        record: the run's record.
        finished: verdicts of the cases that did not fail.
    """
    skipped = [verdict for verdict in finished if verdict.how == "skipped"]
    return skipped, [verdict for verdict in finished if verdict.key in record.debated]


def debate_shares(record: RunRecord, finished: Sequence[VerdictRow]) -> dict[str, Any]:
    """Share of skipped debates and mean rounds, by field of `Summary`."""
    skipped, debated = skipped_and_debated(record, finished)
    decided = len(skipped) + sum(verdict.key in record.gated for verdict in debated)
    return {
        "skip_rate": len(skipped) / decided if decided else None,
        "debate_rounds_mean": mean_of(verdict.rounds for verdict in finished),
        "debate_rounds_mean_debated": mean_of(verdict.rounds for verdict in debated),
    }


def accuracies(record: RunRecord, counted: Sequence[VerdictRow]) -> dict[str, Any]:
    """Accuracies of all, skipped, debated and answered cases, by field of `Summary`."""
    skipped, debated = skipped_and_debated(record, counted)
    references = record.references
    found: dict[str, Any] = {
        "accuracy_by_part": accuracy_by_part(counted, references),
        "accuracy_by_rounds": accuracy_by_rounds(debated, references),
    }
    for name, verdicts in (("", counted), ("_skipped", skipped), ("_debated", debated)):
        value, interval, n = accuracy_of(verdicts, references)
        found |= {f"accuracy{name}": value, f"accuracy{name}_interval": interval, f"scored{name}": n}
    found["scored_groups"] = references.number_of_groups(each.case_id for each in counted if each.correct is not None)
    value, interval, n = accuracy_of(answered(counted), references)
    return found | {"accuracy_answered": value, "accuracy_answered_interval": interval, "answered": n}
