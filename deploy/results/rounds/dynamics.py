"""Round-by-round dynamics of a run's debates: means over cases, first against last round, and accuracy."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from pydantic import Field

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.record.run_record import RunRecord, once_per_record
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.render import banner
from moot.deploy.results.rounds.case_means import (
    LEAST_CASES,
    GroupOf,
    MeanOverCases,
    interval_words,
    mean_over_cases,
)
from moot.deploy.results.rounds.round_evaluation import CONSENSUS, MIXTURE, RoundEvaluation, evaluate_rounds
from moot.deploy.results.rounds.round_trace import BY_KEY, MEASURES, Measure, values_by_side
from moot.deploy.results.summaries.consensus import consensus_verdicts
from moot.deploy.results.text import natural_sort_key, number, signed
from moot.protocols.errors import ConfigError
from moot.protocols.events import RoundFigures
from moot.protocols.round_values import mean_over_sides

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
