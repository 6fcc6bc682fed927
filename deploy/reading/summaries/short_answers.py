"""How near a run's short answers come to the accepted ones: exact matches and the words they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from moot.deploy.reading.record import VerdictRow
from moot.deploy.reading.references import References
from moot.deploy.reading.text import Interval, number, percent
from moot.metrics.bootstrap import bca_interval
from moot.metrics.significance import wilson_interval
from moot.protocols.tasks.scoring import accepted_answers, token_f1


class ShortAnswers(BaseModel):
    """Figures over the finished cases with an accepted answer; none given shares no word with it. Intervals are 95 %.

    Attributes:
        n: cases that both are over.
        exact_match: share of answers that are an accepted one after normalisation; Wilson's interval.
        token_f1: mean over the cases of the best F1 with an accepted answer, in [0, 1]; BCa interval, None when the
            cases are all alike.
    """

    model_config = ConfigDict(frozen=True)

    n: int
    exact_match: float
    exact_match_interval: Interval
    token_f1: float
    token_f1_interval: Interval | None


def short_answers(finished: Sequence[VerdictRow], references: References) -> ShortAnswers | None:
    """The figures of a run's verdicts; None when none is a short answer that can be scored. Raises nothing."""
    exact, shared = list[bool](), list[float]()
    for verdict in finished:
        reference = references[verdict.case_id]
        if reference.scoring != "short answer" or verdict.correct is None:
            continue
        exact.append(verdict.correct)
        shared.append(token_f1(verdict.answer or "", accepted_answers(verdict.gold or "", reference)))
    if not exact:
        return None
    ends, f1_ends = wilson_interval(sum(exact), len(exact)), bca_interval(shared)
    return ShortAnswers(
        n=len(exact),
        exact_match=sum(exact) / len(exact),
        exact_match_interval=(ends.low, ends.high),
        token_f1=float(np.mean(shared)),
        token_f1_interval=(f1_ends.low, f1_ends.high) if f1_ends.resamples else None,
    )


def short_answer_rows(found: ShortAnswers) -> list[tuple[str, str]]:
    """The figures as pairs of a name and a value in words."""
    ends = found.token_f1_interval
    interval = f" [{number(ends[0])}, {number(ends[1])}]" if ends else ""
    return [
        ("exact match", percent(found.exact_match, found.exact_match_interval, found.n)),
        ("token F1", f"{number(found.token_f1)}{interval} (n = {found.n:,})"),
    ]
