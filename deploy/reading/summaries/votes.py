"""Verdicts by a vote of the agents: how many were ties, and what is right with and without them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from moot.actors.record.schema import CaseKey
from moot.deploy.reading.record import Noted, VerdictRow
from moot.deploy.reading.references import References
from moot.deploy.reading.summaries.accuracy import accuracy_of, share
from moot.deploy.reading.text import Interval, percent


class VoteFigures(BaseModel):
    """Verdicts that a vote decided. Intervals are Wilson's, 95 %; None where several cases are about one text.

    Attributes:
        n: verdicts by a vote that did not fail.
        tied: of these, where several answers shared the most votes, so that a tie-break chose.
        accuracy_untied: share of right answers where there was no tie, in [0, 1]; None when nothing can be scored.
        scored_untied: verdicts that it is over.
        accuracy_strict: share of right answers with every tie counted as wrong: a strict plurality is asked for.
        scored: verdicts that it is over.
    """

    model_config = ConfigDict(frozen=True)

    n: int
    tied: int
    accuracy_untied: float | None
    accuracy_untied_interval: Interval | None
    scored_untied: int
    accuracy_strict: float | None
    accuracy_strict_interval: Interval | None
    scored: int


def vote_figures(finished: Sequence[VerdictRow], events: Iterable[Noted], references: References) -> VoteFigures | None:
    """Count the verdicts that a vote decided; None when none did, and for records from before votes were noted."""
    ties = {(event.key, event.path): bool(event.data["tied"]) for event in events if _is_vote(event)}
    voted = [verdict for verdict in finished if _place(verdict) in ties]
    if not voted:
        return None
    tied = {verdict.key for verdict in voted if ties[_place(verdict)]}
    untied, ends_untied, scored_untied = accuracy_of([each for each in voted if each.key not in tied], references)
    strict, ends, scored = share(_strictly(verdict, tied) for verdict in voted)
    independent = references.independent(verdict.case_id for verdict in voted)
    return VoteFigures(
        n=len(voted),
        tied=len(tied),
        accuracy_untied=untied,
        accuracy_untied_interval=ends_untied,
        scored_untied=scored_untied,
        accuracy_strict=strict,
        accuracy_strict_interval=ends if independent else None,
        scored=scored,
    )


def _is_vote(event: Noted) -> bool:
    """Whether an event is a vote as SELENE and its baselines note it."""
    return event.kind == "vote" and isinstance(event.data.get("tied"), list)


def _place(verdict: VerdictRow) -> tuple[CaseKey, str]:
    """Where the vote is noted that decided a verdict, if one did."""
    return verdict.key, "vote/consensus" if verdict.how == "skipped" else "vote"


def _strictly(verdict: VerdictRow, tied: set[CaseKey]) -> bool | None:
    return verdict.correct if verdict.correct is None else verdict.correct and verdict.key not in tied


def vote_rows(found: VoteFigures) -> list[tuple[str, str]]:
    """The figures as pairs of a name and a value in words; of accuracy only where a vote was a tie."""
    rows = [("tied votes", f"{found.tied:,} of {found.n:,}")]
    if found.tied:
        untied = percent(found.accuracy_untied, found.accuracy_untied_interval, found.scored_untied)
        strict = percent(found.accuracy_strict, found.accuracy_strict_interval, found.scored)
        rows += [("accuracy without ties", untied), ("accuracy, ties as wrong", strict)]
    return rows
