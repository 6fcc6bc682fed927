"""Means of the measures of cells, and paired comparisons with the baseline."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from moot.actors.record.tables import read_table
from moot.deploy.results.figures.confidence import score_distribution
from moot.deploy.results.figures.round_trace import number_or_none
from moot.deploy.results.record import RunRecord, decode_json
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.text import Interval
from moot.deploy.studies.ablation.cases import CellCases
from moot.metrics.paired_difference import mean_difference
from moot.metrics.significance import benjamini_hochberg, cliffs_delta_per_case
from moot.protocols.events import RoundFigures
from moot.protocols.socrasynth.events import SidesClosed
from moot.protocols.verdict_sources import VerdictSources

Scores = Mapping[str, float]
"""Scores by case id, sorted by id, so that resampling does not depend on the order of the record."""


class MeanComparison(FrozenModel):
    """Comparison of a cell's values by case (first) with the baseline's (second), on the cases that have both.

    Attributes:
        difference: difference of the means.
        interval: its 95 % interval, by Student's t over groups of cases; None where it is undefined.
        p_value: of the same test, two-sided: below 0.05 exactly if the interval excludes 0.
        p_adjusted: Benjamini-Hochberg adjusted over all compared cells and measures.
        cliffs_delta: paired Cliff's delta, in [-1, 1]: proportion of cases with a higher value than in the baseline
            minus proportion with a lower one.
        n: number of cases.
        groups: number of groups of dependent cases among them; None if all are independent.
    """

    difference: float
    interval: Interval | None
    p_value: float | None
    p_adjusted: float | None = None
    cliffs_delta: float | None
    n: int
    groups: int | None = None


class CaseMean(FrozenModel):
    """Mean of a measure over the cases of a cell.

    Attributes:
        interval: 95 % interval, by Student's t over groups of cases; None where it is undefined.
        n: number of cases with a value.
        vs_baseline: None for the baseline, and without a common case.
    """

    mean: float
    interval: Interval | None
    n: int
    vs_baseline: MeanComparison | None


def case_means(
    scores: Mapping[str, Mapping[str, Scores]], baseline: str, groups: Mapping[str, str]
) -> dict[str, dict[str, CaseMean]]:
    """Mean by cell and measure, and its comparison with the baseline on the common cases.

    Args:
        scores: scores of the cases by cell and measure, at least 0; a measure without scores has no mean.
        baseline: name of the baseline cell.
        groups: group of each case, by id.
    """
    base = scores.get(baseline, {})
    found = dict[tuple[str, str], MeanComparison]()
    for cell, by_key in scores.items():
        for key, each in by_key.items():
            if cell != baseline and each.keys() & base.get(key, {}).keys():
                found[cell, key] = _compared(each, base[key], groups)
    p_values = adjusted_p_values([each.p_value for each in found.values()])
    against = {
        place: each.model_copy(update={"p_adjusted": p})
        for (place, each), p in zip(found.items(), p_values, strict=True)
    }
    return {
        cell: {
            key: CaseMean(
                mean=fmean(each.values()),
                interval=interval_of_mean(each, groups, lowest=0.0),
                n=len(each),
                vs_baseline=against.get((cell, key)),
            )
            for key, each in by_key.items()
            if each
        }
        for cell, by_key in scores.items()
    }


def _compared(own: Scores, base: Scores, groups: Mapping[str, str]) -> MeanComparison:
    """Paired comparison on the common cases, of which there is one at least."""
    shared = sorted(own.keys() & base.keys())
    changes = {case_id: own[case_id] - base[case_id] for case_id in shared}
    found = mean_difference(list(changes.values()), [groups[case_id] for case_id in shared])
    return MeanComparison(
        difference=found.mean,
        interval=None if math.isnan(found.low) else (found.low, found.high),
        p_value=none_if_nan(found.p_value),
        cliffs_delta=none_if_nan(cliffs_delta_per_case([own[i] for i in shared], [base[i] for i in shared])),
        n=found.n,
        groups=found.groups if found.groups < found.n else None,
    )


def adjusted_p_values(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini-Hochberg adjusted p-values, over the known ones."""
    return [none_if_nan(p) for p in benjamini_hochberg(p_values).tolist()]


def interval_of_mean(
    values: Scores, groups: Mapping[str, str], lowest: float = -math.inf, highest: float = math.inf
) -> Interval | None:
    """Interval (95 %) of a mean over cases, see `mean_difference`; None if undefined, as for one group.

    Args:
        values: the values by case.
        groups: group of each case, by id.
        lowest, highest: limits of the values, at which the interval is cut.
    """
    found = mean_difference(list(values.values()), [groups[case_id] for case_id in values])
    return None if math.isnan(found.low) else (max(lowest, found.low), min(highest, found.high))


def none_if_nan(value: float) -> float | None:
    """The value, or None for NaN."""
    return None if math.isnan(value) else value


VOTES = "shares of votes"
"""Reason for a missing Brier score: shares of votes are not stated probabilities."""

_DIGITS = 12
"""Decimals of a score, so that rounding errors are no difference between two cells."""


def brier_scores(folder: str | Path, cell: CellCases) -> tuple[Scores, Mapping[str, int]]:
    """Multiclass Brier score by case, and the number of verdicts without one, by reason.

    Returns:
        The scores, and the counts. Reasons are those of `moot.deploy.results.figures.confidence`, `failed`, `shares of
        votes`, which are not stated probabilities, and `trained on`, for claims in the training data of the run's
        classifier.

    Raises:
        RecordError: the record cannot be read.
    """
    rows = read_table(folder, "verdicts", ["distribution", "payload"]).to_pylist()
    by_key = {(row["case_id"], row["attempt"]): row for row in rows}
    scores, left_out = {}, Counter[str]()
    for case_id, verdict in sorted(cell.verdicts.items()):
        row = by_key[verdict.key]
        if verdict.failed:
            left_out["failed"] += 1
            continue
        if VerdictSources.of(decode_json(row["payload"])).distribution_from == "votes":
            left_out[VOTES] += 1
            continue
        scored = score_distribution(decode_json(row["distribution"]), cell.labels.get(case_id, ()), verdict.gold)
        if isinstance(scored, str):
            left_out[scored] += 1
        elif case_id in cell.trained_on:
            left_out["trained on"] += 1
        else:
            scores[case_id] = round(scored.brier, _DIGITS)
    return scores, dict(sorted(left_out.items()))


MEASURES = {
    "agreement_words": "agreement language of the rounds, 0 to 1",
    "closing_agreement_words": "agreement language of the closing statements, 0 to 1",
    "gamma": "Gamma, the CRIT score of both sides, 0 to 1",
    "conceded": "sides that concede in a round, of 2",
    "words": "words of both sides in a round",
}
"""Titles of the measures of debates; see `moot.protocols.text.agreement_language` for the first two.

A setting such as contentiousness affects how sides argue, even if it changes no answer (SocraSynth, Study 3).
"""


def debate_scores(folder: str | Path) -> dict[str, Scores]:
    """Mean over the rounds of each case's attempt that counts, by key of `MEASURES`; without keys that no round has.

    Raises:
        RecordError: the record cannot be read.
    """
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    record = RunRecord(folder)
    rounds = ((place, _of_round(figures)) for place, figures in record.counted_events(RoundFigures))
    closings = record.counted_events(SidesClosed)
    words = ((place, {"closing_agreement_words": closed.agreement_words}) for place, closed in closings)
    for place, measured in (*rounds, *words):
        for key, value in measured.items():
            if value is not None:
                values[key][place.case_id].append(value)
    return {
        key: {case_id: fmean(of_case) for case_id, of_case in sorted(values[key].items())}
        for key in MEASURES
        if key in values
    }


def _of_round(figures: RoundFigures) -> dict[str, float | None]:
    return {
        "agreement_words": figures.agreement_words,
        "gamma": number_or_none(figures.gamma),
        "conceded": None if figures.conceded is None else float(len(figures.conceded)),
        "words": figures.words,
    }
