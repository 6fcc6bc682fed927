"""The figures of `judge_panels.py`: agreement of people and of judges, order, and panels against what is right.

Intervals are of 95 %: Wilson's for shares of pairs of texts, which are independent of each other, else between
quantiles of 2000 resamples of clusters (a task of PandaLM, a summary of QAGS, a pair of texts).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from printed import Figure
from recorded_judges import (
    Comparisons,
    Floats,
    Raters,
    judgebench_judges,
    llmbar_judges,
    pandalm_judges,
    pandalm_people,
    qags_people,
)

from moot.metrics.bootstrap import BootstrapInterval
from moot.metrics.gwet import Weights, gwet_ac2, raw_agreement
from moot.metrics.krippendorff import Level, krippendorff_alpha
from moot.metrics.pairwise_order import OrderCounts, order_counts, order_intervals
from moot.metrics.proportion import Interval
from moot.metrics.rater_intervals import ac2_interval, alpha_interval, rater_interval, raw_agreement_interval

RESAMPLES = 2000


@dataclass(frozen=True)
class Agreement:
    """How far raters agree; units are those that two or more rated, the last two only for categories with an order.

    `commonest` is the share of the commonest rating.
    """

    name: str
    units: int
    clusters: int
    commonest: float
    raw: Figure
    ac1: Figure
    alpha: Figure
    ordinal_ac2: Figure | None
    ordinal_alpha: Figure | None


@dataclass(frozen=True)
class Order:
    """What the order of two texts did to a judge; `right` is over the pairs whose winner did not change."""

    judge: str
    counts: OrderCounts
    first_shown: Figure
    changed: Figure
    p_value: float
    right: Figure


@dataclass(frozen=True)
class Score:
    """Share of right verdicts over both orders, a tie worth one half.

    `undecided` counts pairs whose winner changed with the order, was a tie or is missing; `ties` counts the verdicts of
    either order that are ties, and `strict` is the share of right verdicts with each of them as wrong. `less_panel` is
    the difference from the panel of all judges in both orders, on the pairs that both judged.
    """

    name: str
    pairs: int
    undecided: int
    text1_first: float
    text2_first: float
    score: Figure
    ties: int
    strict: float
    less_panel: Figure | None


@dataclass(frozen=True)
class AgainstPeople:
    """How often somebody says what most of three people say, and what one of them says."""

    name: str
    units: int
    majority: Figure
    one_person: Figure | None


@dataclass(frozen=True)
class Found:
    """All of it; `text2_right` is the share of pairs whose right text is the second."""

    agreements: list[Agreement]
    orders: dict[str, list[Order]]
    scores: dict[str, list[Score]]
    people: list[AgainstPeople]
    text2_right: dict[str, float]


def agreement(raters: Raters) -> Agreement:
    """The statistics of a table of ratings."""
    ordered, given = raters.ordered, ~np.isnan(raters.ratings)
    raw = raw_agreement_interval(raters.ratings, raters.clusters, resamples=RESAMPLES)
    ratings_of = [int((raters.ratings == category).sum()) for category in raters.categories]
    return Agreement(
        name=raters.name,
        units=int((given.sum(axis=0) >= 2).sum()),
        clusters=len(np.unique(raters.clusters)),
        commonest=max(ratings_of) / int(given.sum()),
        raw=_figure(raw_agreement(raters.ratings), raw),
        ac1=_ac2(raters, "identity"),
        alpha=_alpha(raters, "nominal"),
        ordinal_ac2=_ac2(raters, "ordinal") if ordered else None,
        ordinal_alpha=_alpha(raters, "ordinal") if ordered else None,
    )


def panels(compared: Comparisons) -> list[Raters]:
    """Judges as raters of pairs: with text 1 first, with text 2 first, and over both orders, where a winner that
    changed with the order is a third answer."""
    first, second = (np.array(winners) for winners in zip(*compared.said.values(), strict=True))
    both = np.where(np.isnan(first + second), np.nan, np.where(first == second, first, 0.0))
    return [
        _panel(compared, "text 1 first", first, (1.0, 2.0)),
        _panel(compared, "text 2 first", second, (1.0, 2.0)),
        _panel(compared, "both orders", both, (0.0, 1.0, 2.0)),
    ]


def order(judge: str, compared: Comparisons) -> Order:
    """A judge's verdicts in both orders."""
    said = compared.said[judge]
    counts = order_counts(*said, compared.gold)
    drawn = order_intervals(*said, compared.gold, resamples=RESAMPLES)
    return Order(
        judge=judge,
        counts=counts,
        first_shown=_figure(counts.first_shown_share, drawn.first_shown_share),
        changed=_figure(counts.inconsistency, counts.inconsistency_interval),
        p_value=counts.bias_p_value,
        right=_figure(counts.accuracy, counts.accuracy_interval),
    )


def scores(compared: Comparisons) -> list[Score]:
    """Every judge, and of three or more their majority: of each order alone, and of all verdicts in both orders."""
    rows = list(compared.said.items())
    if len(rows) < 3:
        return [_score(name, said, compared.gold, None) for name, said in rows]
    said = np.array([*compared.said.values()])
    together = majority(said.reshape(-1, said.shape[-1]))
    rows.append(("majority, each order alone", (majority(said[:, 0]), majority(said[:, 1]))))
    found = [_score(name, winners, compared.gold, together) for name, winners in rows]
    return [*found, _score("majority, both orders", (together, together), compared.gold, None)]


def against_people(people: Raters, judges: Raters) -> list[AgainstPeople]:
    """Two judges, what both say where they agree, and each person, for whom the two others are the majority."""
    said = dict(zip(judges.raters, judges.ratings, strict=True))
    first, second = judges.ratings
    said["both judges, where they agree"] = np.where(first == second, first, np.nan)
    most = _most(people.ratings)

    found = [
        AgainstPeople(
            name,
            int((~np.isnan(row)).sum()),
            _mean(_same(row, most)[np.newaxis], people),
            _mean(np.array([_same(row, person) for person in people.ratings]), people),
        )
        for name, row in said.items()
    ]
    a, b, c = people.ratings
    others = np.array([_same(x, np.where(y == z, y, np.nan)) for x, y, z in ((a, b, c), (b, a, c), (c, a, b))])
    pairs = np.array([_same(x, y) for x, y in ((a, b), (a, c), (b, c))])
    units = int((~np.isnan(others)).any(axis=0).sum())
    return [
        *found,
        AgainstPeople("a person, the two others agreeing", units, _mean(others, people), _mean(pairs, people)),
    ]


def majority(votes: Floats) -> Floats:
    """The text with more votes of `(voters, pairs)`: 1 or 2, 0 when they are equal, NaN without a vote."""
    lead = (votes == 1.0).sum(axis=0) - (votes == 2.0).sum(axis=0)
    return np.where(np.isnan(votes).all(axis=0), np.nan, np.select([lead > 0, lead < 0], [1.0, 2.0], 0.0))


def found_in(folder: Path) -> Found:
    """Everything, from the four folders."""
    people, judges = pandalm_people(folder / "pandalm"), pandalm_judges(folder / "pandalm")
    sentences = [qags_people(folder / "qags", source) for source in ("cnndm", "xsum")]
    llmbar, judgebench = llmbar_judges(folder / "llmbar_natural"), judgebench_judges(folder / "judgebench")
    both = (llmbar, judgebench)
    return Found(
        agreements=[agreement(raters) for raters in (people, judges, *sentences, *panels(llmbar))],
        orders={compared.name: [order(judge, compared) for judge in compared.said] for compared in both},
        scores={compared.name: scores(compared) for compared in both},
        people=against_people(people, judges),
        text2_right={compared.name: float((compared.gold == 2.0).mean()) for compared in both},
    )


def _panel(compared: Comparisons, when: str, ratings: Floats, categories: tuple[float, ...]) -> Raters:
    name = f"{compared.name}: {len(ratings)} judges, {when}"
    return Raters(name, ratings, categories, False, np.arange(ratings.shape[1]))


def _score(name: str, said: tuple[Floats, Floats], gold: Floats, panel: Floats | None) -> Score:
    """A judge or a majority, whose mean over the two orders is its score on a pair."""
    by_order = np.array([_points(winners, gold) for winners in said])
    pairs = Raters(name, by_order, (), False, np.arange(len(gold)))
    counts = order_counts(*said, gold)
    return Score(
        name=name,
        pairs=int((~np.isnan(by_order)).any(axis=0).sum()),
        undecided=len(gold) - counts.consistent,
        text1_first=_known_mean(by_order[0]),
        text2_first=_known_mean(by_order[1]),
        score=_mean(by_order, pairs),
        ties=sum(int((winners == 0.0).sum()) for winners in said),
        strict=_known_mean(np.where(np.isnan(by_order), np.nan, by_order == 1.0)),
        less_panel=None if panel is None else _mean(by_order - _points(panel, gold), pairs),
    )


def _points(winners: Floats, gold: Floats) -> Floats:
    """1 for the right text, 0 for the other, one half for a tie, NaN for no verdict."""
    return np.where(np.isnan(winners), np.nan, np.where(winners == 0.0, 0.5, winners == gold))


def _same(one: Floats, other: Floats) -> Floats:
    """1 where two say the same, 0 where not, NaN where one says nothing."""
    return np.where(np.isnan(one) | np.isnan(other), np.nan, one == other)


def _most(ratings: Floats) -> Floats:
    """What two of three people said; NaN where all three differ."""
    a, b, c = ratings
    return np.where((a == b) | (a == c), a, np.where(b == c, b, np.nan))


def _alpha(raters: Raters, level: Level) -> Figure:
    interval = alpha_interval(raters.ratings, level, raters.clusters, resamples=RESAMPLES)
    return _figure(krippendorff_alpha(raters.ratings, level), interval)


def _ac2(raters: Raters, weights: Weights) -> Figure:
    given = (raters.ratings, raters.categories, weights)
    return _figure(gwet_ac2(*given), ac2_interval(*given, raters.clusters, resamples=RESAMPLES))


def _mean(values: Floats, units: Raters) -> Figure:
    """The mean of what is known of `(rows, units)`, drawing the units' clusters."""
    return _figure(_known_mean(values), rater_interval(_known_mean, values, units.clusters, resamples=RESAMPLES))


def _known_mean(values: Floats) -> float:
    """NaN where nothing is known, as in a resample that drew only such units."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _figure(value: float, interval: Interval | BootstrapInterval) -> Figure:
    return Figure(value, interval.low, interval.high)
