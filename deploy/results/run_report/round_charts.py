"""Charts of the rounds of debates: means over cases with their intervals, or of few cases each as a line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from moot.deploy.results.report.blocks import Chart, Series
from moot.deploy.results.rounds.case_means import LEAST_CASES, MeanOverCases
from moot.deploy.results.rounds.dynamics import Dynamics, RoundValue, round_values
from moot.deploy.results.rounds.round_trace import BY_KEY, Measure
from moot.deploy.results.run_report.data import RunData

_LEFT_OUT = MeanOverCases(mean=None, low=None, high=None, cases=0)
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


def round_charts(run: RunData, names: Sequence[str] = tuple(FIGURES)) -> Iterator[Chart]:
    """The charts of a run's rounds that have a known number; fewer than ten cases are drawn one by one."""
    found = run.dynamics
    if found is None:
        return
    if found.rounds[0].cases < LEAST_CASES:
        values = round_values(run)
        for name in names:
            yield from _case_lines(name, values)
    else:
        for name in names:
            yield from _means(name, found)


def _means(name: str, found: Dynamics) -> Iterator[Chart]:
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
    means = [each.measured[measure.key] if each.cases >= LEAST_CASES else _LEFT_OUT for each in found.rounds]
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
