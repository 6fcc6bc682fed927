"""Evaluation of a run's rounds against the gold labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from statistics import fmean
from typing import Literal

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.rounds.case_means import GroupOf, MeanOverCases, mean_over_cases
from moot.deploy.results.summaries.consensus import ConsensusVerdict, ScoredDistribution, score_distribution
from moot.metrics.brier import brier_multiclass
from moot.protocols.distribution import OTHER
from moot.protocols.evince.events import EvinceRoundEnded
from moot.protocols.evince.round_numbers import reliable_mixture

MIXTURE, CONSENSUS = "mixture", "consensus"
"""Weights: reliability (maxim 4.1), and CRIT."""

When = Literal["first", "last", "only"]
"""Which round of each debate; `only` where no debate of the run has a second one."""


class SideScores(FrozenModel):
    """Scores of one side's distributions, or of the joint ones, against the gold labels.

    Attributes:
        of: the side, `mixture` or `consensus`.
        accuracy: share of cases whose gold label is the single most likely one.
        brier: over all labels, 0 to 2.
        kl: mean Kullback-Leibler divergence of the distribution from the truth, -ln P(gold), in nats, over the cases
            where it is finite; None without any.
        kl_infinite: cases where the gold label has no mass; they are left out of `kl`, so compare by Brier.
    """

    of: str
    accuracy: float
    brier: MeanOverCases
    kl: float | None
    kl_infinite: int


class RoundEvaluation(FrozenModel):
    """Evaluation of the sides and their joint distributions in one round, over the cases where all can be scored.

    Debates with other sides than most (one never spoke) are excluded. A single side has no mixture, no consensus and
    one round.

    Attributes:
        better: the side with the lower mean Brier score; the first one among equals.
        beats_all: by mixture and consensus, share of cases in which its Brier score is below every side's.
        over_better: likewise, its Brier score less that of `better`; below 0 where it gains.
    """

    when: When
    cases: int
    held: list[SideScores]
    better: str
    beats_all: dict[str, float]
    over_better: dict[str, MeanOverCases]


@dataclass(frozen=True, slots=True)
class _Case:
    case_id: str
    truth: int
    rows: Mapping[str, Sequence[float]]


def evaluate_rounds(
    verdicts: Sequence[ConsensusVerdict], rounds: Mapping[str, Sequence[str]], group_of: GroupOf
) -> list[RoundEvaluation]:
    """Evaluates the first and the last round of a run's debates; empty where nothing can be scored.

    A single side's distribution, the openings of an ensemble, and the opener's in a debate are independent answers.

    Args:
        verdicts: see `consensus_verdicts`.
        rounds: data of `round` events by case, as recorded, in order.
        group_of: cases of a group are dependent.
    """
    has_second = any(len(held) > 1 for held in rounds.values())
    wanted: tuple[tuple[When, int], ...] = (("first", 0), ("last", -1)) if has_second else (("only", -1),)
    found: list[RoundEvaluation] = []
    for when, place in wanted:
        cases = [case for each in verdicts if (case := _case(each, rounds.get(each.case_id, ()), place)) is not None]
        if cases:
            (names, _), *_ = Counter(tuple(case.rows) for case in cases).most_common()
            if len(names) == 1 and found:
                continue
            found.append(_truth(when, [case for case in cases if tuple(case.rows) == names], group_of))
    return found


def _case(verdict: ConsensusVerdict, rounds: Sequence[str], place: int) -> _Case | None:
    ended = EvinceRoundEnded.read_json(rounds[place]) if rounds else None
    if ended is None or not ended.distributions:
        return None
    stated = ended.distributions
    scored = {side: score_distribution(stated[side], verdict.labels, verdict.gold) for side in sorted(stated)}
    rows = {side: each.row for side, each in scored.items() if isinstance(each, ScoredDistribution)}
    if len(rows) < len(scored) or verdict.gold is None:
        return None
    truth = (*verdict.labels, OTHER).index(verdict.gold)
    if len(rows) == 1:
        return _Case(verdict.case_id, truth, rows)
    together: dict[str, Sequence[float]] = {MIXTURE: reliable_mixture(np.array(list(rows.values()))).tolist()}
    if place < 0:
        if not isinstance(verdict.score, ScoredDistribution):
            return None
        together[CONSENSUS] = verdict.score.row
    return _Case(verdict.case_id, truth, rows | together)


def _truth(when: When, cases: Sequence[_Case], group_of: GroupOf) -> RoundEvaluation:
    names = list(cases[0].rows)
    brier = {of: _brier(cases, of) for of in names}
    sides = [of for of in names if of not in (MIXTURE, CONSENSUS)]
    together = [of for of in names if of not in sides]
    better = min(sides, key=lambda side: fmean(brier[side]))
    least = np.min([brier[side] for side in sides], axis=0)
    ids = [case.case_id for case in cases]
    over = {of: np.subtract(brier[of], brier[better]).tolist() for of in together}
    return RoundEvaluation(
        when=when,
        cases=len(cases),
        held=[_against(of, cases, brier[of], group_of) for of in names],
        better=better,
        beats_all={of: float(np.mean(np.array(brier[of]) < least)) for of in together},
        over_better={of: mean_over_cases(zip(ids, over[of], strict=True), group_of) for of in together},
    )


def _brier(cases: Sequence[_Case], of: str) -> list[float]:
    """Brier scores of a side's distributions, those over equally many labels at once."""
    sizes = np.array([len(case.rows[of]) for case in cases])
    found = np.empty(len(cases))
    for size in np.unique(sizes):
        some = np.flatnonzero(sizes == size).tolist()
        rows = np.array([cases[place].rows[of] for place in some])
        found[some] = brier_multiclass(rows, [cases[place].truth for place in some])
    scores: list[float] = found.tolist()
    return scores


def _against(of: str, cases: Sequence[_Case], brier: Sequence[float], group_of: GroupOf) -> SideScores:
    mass = [(case.rows[of][case.truth], case.rows[of]) for case in cases]
    divergences = [-log(p) if p > 0.0 else inf for p, _ in mass]
    finite = [kl for kl in divergences if kl < inf]
    return SideScores(
        of=of,
        accuracy=fmean(p == max(row) and list(row).count(p) == 1 for p, row in mass),
        brier=mean_over_cases(((case.case_id, value) for case, value in zip(cases, brier, strict=True)), group_of),
        kl=fmean(finite) if finite else None,
        kl_infinite=len(divergences) - len(finite),
    )
