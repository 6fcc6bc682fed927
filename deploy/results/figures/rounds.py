"""Rounds: measures of debates by round, as means over cases, first against last, and against the right answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from moot.deploy.results.figures.confidence import (
    ConsensusVerdict,
    ScoredDistribution,
    consensus_verdicts,
    score_distribution,
)
from moot.deploy.results.figures.round_trace import BY_KEY, MEASURES, Measure, values_by_side
from moot.deploy.results.record import RunRecord, once_per_record
from moot.deploy.results.report.blocks import Block, Chart, Heading, Note, Series, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.report.render import banner
from moot.deploy.results.stats import LEAST_CASES, GroupOf, MeanOverCases, interval_words, mean_over_cases
from moot.deploy.results.text import natural_sort_key, number, signed
from moot.metrics.brier import brier_multiclass
from moot.protocols.distribution import OTHER
from moot.protocols.errors import ConfigError
from moot.protocols.events import RoundFigures
from moot.protocols.evince.events import EvinceRoundEnded
from moot.protocols.evince.round_numbers import reliable_mixture
from moot.protocols.round_values import mean_over_sides

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


_LEFT_OUT = {"kl", "ce", "information_gain"}
"""Measures without a direction of their own beside JSD, and the change between rounds (of `mixture_entropy`)."""

KEYS = tuple(measure.key for measure in MEASURES if measure.key not in _LEFT_OUT)
"""Measured keys of `MEASURES`."""


class RoundMeans(FrozenModel):
    """Means of one round of a run's debates.

    Attributes:
        round: number in the protocol's count.
        cases: cases with this round. Debates that had ended before are excluded.
        measured: means by key, as recorded; a measure by side or pair is averaged over these, unknown if one is
            unknown.
    """

    round: int
    cases: int
    measured: dict[str, MeanOverCases]


class RoundChange(FrozenModel):
    """Change of a measure from each debate's first round with a value to its last.

    Attributes:
        first, last: means over the same cases, those with two such rounds.
        by_case: mean change, last less first.
        percent: mean change as a share of the first mean (the source's "total improvement"); None when that is not
            above 0.
    """

    first: float | None
    last: float | None
    by_case: MeanOverCases
    percent: float | None


class Dynamics(FrozenModel):
    """Dynamics of a run's rounds (EVINCE, tables 7.2 and 7.3, over many debates).

    Attributes:
        rounds: in order.
        changes: by key of the measures with values in two rounds of any debate.
        truth: sides, mixture and consensus compared with the gold labels in the first and the last round; empty without
            labels or distributions.
    """

    schema_version: int
    run: str
    simulated: bool
    rounds: list[RoundMeans]
    changes: dict[str, RoundChange]
    truth: list[RoundEvaluation] = Field(default_factory=list)


class RoundValue(NamedTuple):
    """Value of a measure for a case in a round; None when unknown."""

    case_id: str
    round: int
    value: float | None


@once_per_record
def round_dynamics(record: RunRecord) -> Dynamics:
    """Dynamics of a run, finished or not; the attempts that count are those of `counted_rows`.

    Raises:
        ConfigError: no round of the run has any of the measures.
        RecordError: the folder has no run, or it cannot be read.
    """
    facts, debates = record.info, record.once(_debates)
    known, group_of = record.once(round_values), record.references.group
    if not known:
        raise ConfigError(f"{facts.name}: its debates have no rounds with numbers")
    return Dynamics(
        schema_version=facts.schema_version,
        run=facts.name,
        simulated=facts.simulated,
        rounds=_rounds(debates, known, group_of),
        changes={key: change for key, found in known.items() if (change := _change(found, group_of)) is not None},
        truth=evaluate_rounds(consensus_verdicts(record), {each.case_id: each.data for each in debates}, group_of),
    )


@once_per_record
def round_values(record: RunRecord) -> dict[str, list[RoundValue]]:
    """Values behind `round_dynamics`: by key each case's values, in the order of its rounds.

    Raises:
        RecordError: the folder has no run, or it cannot be read.
    """
    values: dict[str, list[RoundValue]] = {key: [] for key in KEYS}
    for debate in record.once(_debates):
        for key, of_sides in debate.by_side.items():
            if key in values:
                values[key] += _means(debate, of_sides)
    return {key: found for key, found in values.items() if any(each.value is not None for each in found)}


class _Debate(NamedTuple):
    """The rounds of a case, in order.

    Attributes:
        data: of the events, as recorded.
        figures: of those that have the form of `RoundFigures`.
        by_side: by key of `MEASURES`, the numbers of each side, see `values_by_side`; empty where no number is known.
    """

    case_id: str
    data: list[str]
    figures: list[RoundFigures]
    by_side: Mapping[str, Sequence[list[float | None]]]


def _debates(record: RunRecord) -> list[_Debate]:
    rows = record.rows_that_count(record.events_of_kind(RoundFigures.kind))
    by_case: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for case_id, path, data in zip(*(rows[name].to_pylist() for name in ("case_id", "path", "data")), strict=True):
        by_case[case_id].append((path, data))
    order = {path: natural_sort_key(path) for path in rows["path"].unique().to_pylist()}
    return [_debate(case_id, sorted(rounds, key=lambda each: order[each[0]])) for case_id, rounds in by_case.items()]


def _debate(case_id: str, rounds: Sequence[tuple[str, str]]) -> _Debate:
    read = [RoundFigures.read_json(data or "{}", path) for path, data in rounds]
    figures = [each for each in read if each is not None]
    named = set().union(*(each.model_fields_set for each in figures))
    by_side = {
        measure.key: [values for _, values in values_by_side(measure, figures)]
        for measure in MEASURES
        if measure.key in named
    }
    return _Debate(case_id, [data for _, data in rounds], figures, {key: each for key, each in by_side.items() if each})


def _means(debate: _Debate, by_side: Sequence[list[float | None]]) -> Iterator[RoundValue]:
    """A measure in each round: of a number by side or pair the mean, unknown if one is unknown."""
    for each, of_sides in zip(debate.figures, zip(*by_side, strict=True), strict=False):
        yield RoundValue(debate.case_id, each.round, mean_over_sides(of_sides))


def _rounds(
    debates: Sequence[_Debate], known: Mapping[str, Sequence[RoundValue]], group_of: GroupOf
) -> list[RoundMeans]:
    cases = Counter(number for each in debates if each.by_side for number in {one.round for one in each.figures})
    by_round: dict[str, dict[int, list[tuple[str, float | None]]]] = {key: defaultdict(list) for key in known}
    for key, values in known.items():
        for each in values:
            by_round[key][each.round].append((each.case_id, each.value))
    return [
        RoundMeans(
            round=number,
            cases=cases[number],
            measured={key: mean_over_cases(of_key.get(number, ()), group_of) for key, of_key in by_round.items()},
        )
        for number in sorted(cases)
    ]


def _change(values: Sequence[RoundValue], group_of: GroupOf) -> RoundChange | None:
    of_case: dict[str, list[float]] = defaultdict(list)
    for each in values:
        if each.value is not None:
            of_case[each.case_id].append(each.value)
    ends = {case_id: (known[0], known[-1]) for case_id, known in of_case.items() if len(known) > 1}
    if not ends:
        return None
    first, last = (fmean(end[place] for end in ends.values()) for place in (0, 1))
    by_case = mean_over_cases([(case_id, after - before) for case_id, (before, after) in ends.items()], group_of)
    percent = 100.0 * (last - first) / first if first > 0.0 else None
    return RoundChange(first=first, last=last, by_case=by_case, percent=percent)


_HEADER = ["", "round", "mean", "95 % interval", "cases", "change"]


def _note(found: Dynamics) -> str:
    sentences = [
        f"Means over the cases that have the round, with 95 % intervals over {LEAST_CASES} groups of cases or more."
    ]
    if len(found.rounds) > 1:
        sentences.append("Later rounds are of the debates that had not ended.")
    if found.changes:
        sentences.append(
            "The change from first to last is of each debate's own rounds; in per cent of the mean at first."
        )
    return " ".join(sentences)


def _table_rows(found: Dynamics) -> list[list[str]]:
    rows = []
    for key in found.rounds[0].measured:
        measure = BY_KEY[key]
        for place, each in enumerate(found.rounds):
            name = measure.heading if place == 0 else ""
            rows.append([name, str(each.round), *_measured(measure, each.measured[key]), ""])
        if (change := found.changes.get(key)) is not None:
            rows.append(["", "first to last", *_change_cells(measure, change)])
    return rows


def _change_cells(measure: Measure, change: RoundChange) -> list[str]:
    percent = "" if change.percent is None else f"{change.percent:+z.0f} %"
    return [*_measured(measure, change.by_case, signed), percent]


def change_blocks(found: Dynamics) -> list[Block]:
    """Table of the changes from first to last round, which are over the same cases; empty without any."""
    if not found.changes:
        return []
    rows = []
    for key, change in found.changes.items():
        measure = BY_KEY[key]
        ends = [
            number(None if end is None else measure.times * end, measure.digits) for end in (change.first, change.last)
        ]
        rows.append([measure.heading, *ends, *_change_cells(measure, change)])
    header = ["", "first", "last", "change", "95 % interval", "cases", "change, % of first"]
    return [Table("From each debate's first round to its last, over the same cases", header, rows)]


def _measured(
    measure: Measure, found: MeanOverCases, written: Callable[[float | None, int], str] = number
) -> list[str]:
    mean = written(None if found.mean is None else measure.times * found.mean, measure.digits)
    return [mean, interval_words(found.low, found.high, measure.times, measure.digits), f"{found.cases:,}"]


_TRUTH_HEADER = ["round", "of", "accuracy, %", "Brier (0 to 2)", "95 % interval", "KL to truth, nat", "cases"]
_WEIGHTED_BY = {MIXTURE: "reliability", CONSENSUS: "CRIT (that of an ensemble is not)"}


def _truth_note(found: Dynamics) -> str:
    scores = [each for truth in found.truth for each in truth.held]
    shown = {each.of for each in scores}
    together = [f"the {of} is weighted by {what}" for of, what in _WEIGHTED_BY.items() if of in shown]
    weighted = f": {', '.join(together)}" if together else ""
    infinite = any(each.kl_infinite for each in scores)
    finite = " KL to the truth is a mean over finite ones; +n cases are infinite." if infinite else ""
    return f"Compared with the gold labels{weighted}.{finite}"


def _truth_rows(found: Dynamics) -> list[list[str]]:
    rows = []
    for truth in found.truth:
        for place, each in enumerate(truth.held):
            when = truth.when if place == 0 else ""
            kl = number(each.kl) + (f" +{each.kl_infinite}" if each.kl_infinite else "")
            brier = [number(each.brier.mean), interval_words(each.brier.low, each.brier.high)]
            rows.append([when, each.of, number(100.0 * each.accuracy, 1), *brier, kl, f"{truth.cases:,}"])
    return rows


def _truth_words(found: Dynamics) -> list[str]:
    """Sentences on the joint distributions, compared with the better side, or the best of several."""
    lines = []
    for truth in found.truth:
        better = "better" if len(truth.held) - len(truth.over_better) == 2 else "best"
        for of, over in truth.over_better.items():
            interval = "interval unknown" if over.low is None else interval_words(over.low, over.high)
            beats = f"below every side's in {number(100.0 * truth.beats_all[of], 1)} % of the cases"
            brier = f"{truth.when} round, {of}: Brier {signed(over.mean)} ({interval})"
            lines.append(f"{brier} against the {better} side, {truth.better}; {beats}")
    return lines


def dynamics_blocks(found: Dynamics) -> list[Block]:
    """Report of the rounds, and of the sides' accuracy in them."""
    head = [*banner(found.simulated), Heading(f"Round by round: {found.run}", 1), Note(_note(found))]
    return [*head, Table("", _HEADER, _table_rows(found)), *truth_blocks(found)]


def truth_blocks(found: Dynamics) -> list[Block]:
    """Report of the sides' accuracy against the gold labels; empty without labels."""
    if not found.truth:
        return []
    table = Table("", _TRUTH_HEADER, _truth_rows(found))
    return [Note(_truth_note(found)), table, *(Note(line) for line in _truth_words(found))]


def dynamics_of(record: RunRecord) -> Dynamics | None:
    """Round-by-round dynamics; None where no round has any numbers."""
    try:
        return round_dynamics(record)
    except ConfigError:
        return None


_NOT_DRAWN = MeanOverCases(mean=None, low=None, high=None, cases=0)
"""In place of a mean of too few cases."""


class _Figure(NamedTuple):
    """Measures that share a scale.

    Attributes:
        keys: of `MEASURES`.
        title: what is shown.
        axis: what the scale is of.
        note: how to read it.
        top: where the scale ends; None where the values decide.
    """

    keys: tuple[str, ...]
    title: str
    axis: str
    note: str
    top: float | None = None


FIGURES: Mapping[str, _Figure] = {
    "divergence": _Figure(
        ("jsd", "generalised_jsd"),
        "How far apart the sides' distributions are, by round",
        "divergence, nat",
        "0: all sides state one distribution; 0.69 (ln 2): two sides have no label in common. A line that falls says "
        "that the sides come together.",
    ),
    "distance": _Figure(
        ("d", "wd"),
        "Distance between the sides' answers, by round",
        "distance",
        "0: the answers are alike. A line that falls says that the sides come together.",
    ),
    "entropy": _Figure(
        ("entropy", "mixture_entropy"),
        "How unsure the sides are, by round",
        "entropy, nat",
        "0: all probability is on one label. H is the mean of the sides' own entropies; H mixture is of their mean "
        "distribution, and is higher the more they differ.",
    ),
    "mutual-information": _Figure(
        ("mi", "nmi"),
        "Mutual information of the sides' distributions, by round",
        "MI, nat; NMI, 0 to 1",
        "0: one side's distribution says nothing about the other's. NMI is the share of the greatest possible one.",
    ),
    "contentiousness": _Figure(
        ("kappa",),
        "Contentiousness that the sides were told to argue with, by round",
        "kappa",
        "1: contradict everything; 0: seek agreement.",
        top=1.0,
    ),
    "quality": _Figure(
        ("crit",),
        "Quality of the arguments as judges score them, by round",
        "score, of 10",
        "CRIT scores of the sides, their mean (in SocraSynth: Gamma).",
        top=10.0,
    ),
    "changed": _Figure(
        ("changed",),
        "Agents that changed their answer, by round",
        "agents",
        "Where nobody changes an answer any more, further rounds cost and bring nothing.",
    ),
}
"""The figures of rounds by name, in the order in which they are read."""


def round_charts(run: RunRecord, names: Sequence[str] = tuple(FIGURES)) -> Iterator[Chart]:
    """The charts of a run's rounds that have a known number; fewer than ten cases are drawn one by one."""
    found = dynamics_of(run)
    if found is None:
        return
    if found.rounds[0].cases < LEAST_CASES:
        values = round_values(run)
        for name in names:
            yield from _case_lines(name, values)
    else:
        for name in names:
            yield from _mean_charts(name, found)


def _mean_charts(name: str, found: Dynamics) -> Iterator[Chart]:
    figure = FIGURES[name]
    several = [_line(BY_KEY[key], found) for key in figure.keys if key in found.rounds[0].measured]
    if several:
        yield _chart(f"rounds-{name}", figure, several, f"{figure.note} {_base(found)}")


def _base(found: Dynamics) -> str:
    """Sentences on the cases that the means of each round are over."""
    counts = [each.cases for each in found.rounds]
    several = ", ".join(f"{n:,}" for n in counts)
    sentences = [f"Means over the cases with the round ({several}), with 95 % intervals over cases."]
    if len(set(counts)) > 1:
        sentences.append(
            "Later rounds are of fewer and other cases, those whose debate had not ended: a line can rise or fall "
            "without any debate that does."
        )
    if min(counts) < LEAST_CASES:
        sentences.append(f"A mean of fewer than {LEAST_CASES} cases is left out.")
    return " ".join(sentences)


def _line(measure: Measure, found: Dynamics) -> Series:
    means = [each.measured[measure.key] if each.cases >= LEAST_CASES else _NOT_DRAWN for each in found.rounds]
    return Series(
        measure.name,
        [str(each.round) for each in found.rounds],
        [_shown(measure, each.mean) for each in means],
        low=[_shown(measure, each.low) for each in means],
        high=[_shown(measure, each.high) for each in means],
        mark="line",
    )


def _case_lines(name: str, values: Mapping[str, Sequence[RoundValue]]) -> Iterator[Chart]:
    figure = FIGURES[name]
    for key in figure.keys:
        measure = BY_KEY[key]
        by_case: dict[str, list[RoundValue]] = defaultdict(list)
        for each in values.get(key, ()):
            by_case[each.case_id].append(each)
        several = [_case_line(measure, case_id, values) for case_id, values in by_case.items()]
        if several:
            title = f"{figure.title}: {measure.name}" if len(figure.keys) > 1 else figure.title
            note = f"{figure.note} Each line is a case; a click on a point opens it."
            yield _chart(f"rounds-{key.replace('_', '-')}", figure._replace(title=title), several, note)


def _case_line(measure: Measure, case_id: str, values: Sequence[RoundValue]) -> Series:
    return Series(
        case_id,
        [str(each.round) for each in values],
        [_shown(measure, each.value) for each in values],
        mark="line",
        cases=[case_id] * len(values),
    )


def _chart(name: str, figure: _Figure, series: Sequence[Series], note: str) -> Chart:
    bottom_to_top = None if figure.top is None else (0.0, figure.top)
    return Chart(name, figure.title, series, x_label="round", y_label=figure.axis, note=note, y_range=bottom_to_top)


def _shown(measure: Measure, value: float | None) -> float | None:
    """A recorded number as people see it."""
    return None if value is None else measure.times * value
