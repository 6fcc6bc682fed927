"""Shares of right answers: of verdicts together, and part by part where a task has several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from moot.deploy.reading.record import VerdictRow
from moot.deploy.reading.references import References
from moot.deploy.reading.text import Interval
from moot.metrics.significance import wilson_interval


class PartAccuracy(BaseModel):
    """The share of right answers in one part of a task, such as one essay set.

    Attributes:
        part: its name; empty for cases of no part.
        accuracy: in [0, 1], no answer being wrong; None when nothing can be scored.
        interval: Wilson's, 95 %; None where several cases are about one text.
        scored: verdicts that it is over.
        answered: of these, those with an answer.
    """

    model_config = ConfigDict(frozen=True)

    part: str
    accuracy: float | None
    interval: Interval | None
    scored: int
    answered: int


class RoundsAccuracy(BaseModel):
    """The share of right answers among the verdicts after so many rounds of debate.

    Attributes:
        rounds: how many.
        accuracy, interval, scored: as in `PartAccuracy`.
    """

    model_config = ConfigDict(frozen=True)

    rounds: int
    accuracy: float | None
    interval: Interval | None
    scored: int


def share(outcomes: Iterable[bool | None]) -> tuple[float | None, Interval | None, int]:
    """Share of the known outcomes that are true, its Wilson interval (95 %), and how many are known.

    >>> share([None])
    (None, None, 0)
    """
    known = [outcome for outcome in outcomes if outcome is not None]
    if not known:
        return None, None, 0
    ends = wilson_interval(sum(known), len(known))
    return sum(known) / len(known), (ends.low, ends.high), len(known)


def accuracy_of(verdicts: Sequence[VerdictRow], references: References) -> tuple[float | None, Interval | None, int]:
    """The share of right answers, its interval where the cases are independent, and how many can be scored."""
    value, interval, n = share(verdict.correct for verdict in verdicts)
    independent = references.independent(verdict.case_id for verdict in verdicts)
    return value, interval if independent else None, n


def answered(verdicts: Iterable[VerdictRow]) -> list[VerdictRow]:
    """The verdicts that name an answer."""
    return [verdict for verdict in verdicts if verdict.answer is not None]


def accuracy_by_part(finished: Sequence[VerdictRow], references: References) -> list[PartAccuracy] | None:
    """The shares of the parts, in the order in which they first come; None where all cases are of one part."""
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
    """The shares by length of the debate, the shortest first (SELENE's table 4); None where all are of one length."""
    lengths = sorted({verdict.rounds for verdict in debated})
    if len(lengths) < 2:
        return None
    rows = []
    for rounds in lengths:
        value, interval, n = accuracy_of([verdict for verdict in debated if verdict.rounds == rounds], references)
        rows.append(RoundsAccuracy(rounds=rounds, accuracy=value, interval=interval, scored=n))
    return rows
