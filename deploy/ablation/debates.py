"""What the debates of each cell were like: means by case of what their rounds hold, and the change from the baseline.

A setting such as contentiousness acts on how sides argue, whether or not that changes an answer (SocraSynth, Study 3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import BaseModel, ConfigDict

from moot.deploy.ablation.cases import adjusted, bca, known
from moot.deploy.reading.record import Noted, read_events
from moot.deploy.reading.text import Interval
from moot.metrics.significance import wilcoxon_signed_rank

MEASURES = {
    "agreement_words": "agreement language of the rounds, 0 to 1",
    "closing_agreement_words": "agreement language of the closing statements, 0 to 1",
    "gamma": "Gamma, the CRIT score of both sides, 0 to 1",
    "conceded": "sides that concede in a round, of 2",
    "words": "words of both sides in a round",
}
"""What is looked at, in words; see `moot.protocols.agreement_language` for the first two."""

Scores = Mapping[str, float]
"""By case."""


class MeanAgainst(BaseModel):
    """A cell's means by case (first) against the baseline's (second), on the cases that have both.

    Attributes:
        interval: BCa bootstrap of the difference over the cases, 95 %.
        p_value: two-sided, of Wilcoxon's signed-rank test; `p_adjusted` after Benjamini and Hochberg, over all cells
            and measures that are compared.
        n: cases.
    """

    model_config = ConfigDict(frozen=True)

    difference: float
    interval: Interval | None
    p_value: float | None
    p_adjusted: float | None
    n: int


class DebateMean(BaseModel):
    """The mean of a measure over the cases of a cell.

    Attributes:
        interval: BCa bootstrap over the cases, 95 %.
        n: cases with a value.
        vs_baseline: None for the baseline itself, and without a common case.
    """

    model_config = ConfigDict(frozen=True)

    mean: float
    interval: Interval | None
    n: int
    vs_baseline: MeanAgainst | None


def debate_scores(folder: str | Path) -> dict[str, Scores]:
    """By key of `MEASURES` the mean of each case's rounds, of its latest attempt; without keys that no round holds.

    Raises:
        RecordError: the record cannot be read.
    """
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for event in _latest(read_events(folder, ("round", "closing"))):
        for key, value in _measured(event).items():
            if value is not None:
                values[key][event.case_id].append(value)
    return {
        key: {case_id: fmean(of_case) for case_id, of_case in sorted(values[key].items())}
        for key in MEASURES
        if key in values
    }


def debate_figures(scores: Mapping[str, Mapping[str, Scores]], baseline: str) -> dict[str, dict[str, DebateMean]]:
    """By cell and measure its mean, and the change from the baseline.

    Args:
        scores: by cell and measure, the means by case.
        baseline: a cell's name.
    """
    base = scores.get(baseline, {})
    changes = {
        (cell, key): change
        for cell, by_key in scores.items()
        for key, each in by_key.items()
        if cell != baseline and (change := _change(each, base.get(key, {}))) is not None
    }
    adjustments = adjusted([change.p_value for change in changes.values()])
    against = {
        place: change.model_copy(update={"p_adjusted": p})
        for (place, change), p in zip(changes.items(), adjustments, strict=True)
    }
    return {
        cell: {
            key: DebateMean(
                mean=fmean(each.values()),
                interval=bca(list(each.values())),
                n=len(each),
                vs_baseline=against.get((cell, key)),
            )
            for key, each in by_key.items()
        }
        for cell, by_key in scores.items()
    }


def _change(own: Scores, base: Scores) -> MeanAgainst | None:
    shared = sorted(own.keys() & base.keys())
    if not shared:
        return None
    one, other = [own[case_id] for case_id in shared], [base[case_id] for case_id in shared]
    return MeanAgainst(
        difference=fmean(one) - fmean(other),
        interval=bca([a - b for a, b in zip(one, other, strict=True)]),
        p_value=known(wilcoxon_signed_rank(one, other).p_value),
        p_adjusted=None,
        n=len(shared),
    )


def _latest(events: Iterable[Noted]) -> list[Noted]:
    events = list(events)
    attempts: dict[str, int] = {}
    for event in events:
        attempts[event.case_id] = max(event.attempt, attempts.get(event.case_id, 0))
    return [event for event in events if event.attempt == attempts[event.case_id]]


def _measured(event: Noted) -> dict[str, float | None]:
    data = event.data
    words = _number(data.get("agreement_words"))
    if event.kind == "closing":
        return {"closing_agreement_words": words}
    conceded = data.get("conceded")
    return {
        "agreement_words": words,
        "gamma": _number(data.get("gamma")),
        "conceded": float(len(conceded)) if isinstance(conceded, list) else None,
        "words": _number(data.get("words")),
    }


def _number(value: Any) -> float | None:
    known_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return float(value) if known_number else None
