"""Charts of a run in progress, as data like the report's charts; the page draws them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from moot.actors.record.round_bands import RoundBands
from moot.actors.record.signals import Floats, LogprobBands, Signals
from moot.actors.record.token_confidence import Speaker
from moot.deploy.results.figures.round_trace import MEASURES, OPENINGS, Measure
from moot.deploy.results.report.blocks import Chart, Series
from moot.deploy.results.text import count
from moot.deploy.service.live.figures import RunningFigures

_MOST_SPEAKERS = 12
"""Most speakers with charts: those with the most replies."""

_TITLES = {
    "mi": "Mutual information: MI",
    "nmi": "Normalised mutual information: NMI",
    "ce": "Cross entropy: CE",
    "information_gain": "Information gain",
}
"""Titles of the measures without a panel."""


def live_charts(figures: RunningFigures, signals: Signals) -> Iterator[Chart]:
    """Charts for which the run has numbers, in a stable order.

    Args:
        figures: of the run so far.
        signals: aggregates of the run's writers.
    """
    yield from _accuracy(figures)
    yield from _pace(figures)
    yield from _rounds(signals)
    yield from _speakers(signals)
    yield from _judged(signals)


def _accuracy(figures: RunningFigures) -> Iterator[Chart]:
    points = figures.accuracy.points()
    if not points:
        return
    x, y, low, high = (list(map(float, column)) for column in zip(*points, strict=True))
    yield Chart(
        "live-accuracy",
        "Accuracy so far",
        [Series("accuracy", x, y, low, high, mark="line")],
        x_label="verdicts that can be scored",
        y_label="accuracy",
        y_range=(0.0, 1.0),
        note="With its 95 % interval (Wilson), as if cases were independent. Easy cases end first: wait for the end.",
    )


def _pace(figures: RunningFigures) -> Iterator[Chart]:
    minutes, rates = figures.debates_by_time.rates()
    if len(minutes) > 1:
        yield Chart(
            "live-pace",
            "Debates per second",
            [Series("debates per second", minutes, rates, mark="line")],
            x_label="minutes since the first verdict",
            y_label="debates per second",
        )


def _rounds(signals: Signals) -> Iterator[Chart]:
    """A chart for each measure: bands of several in one would hide each other."""
    noted = set(signals.measures())
    for measure in (*MEASURES, OPENINGS):
        if measure.key not in noted:
            continue
        bands, panel = signals.rounds(measure.key), measure.panel
        top = None if panel is None or panel.top is None else (0.0, panel.top)
        if bands.n.any():
            later = " Later rounds are of the debates that had not ended." if (bands.n > 0).sum() > 1 else ""
            note = f"{_over(bands.n, 'debate', 'debates')} so far.{later}"
            yield _by_round(f"live-{_plain(measure.key)}", _title(measure), measure, bands, note, top)


def _title(measure: Measure) -> str:
    if measure.panel is None:
        return _TITLES[measure.key]
    title = measure.panel.title[:1].upper() + measure.panel.title[1:]
    return title if measure.name in measure.panel.title else f"{title}: {measure.name}"


def _by_round(
    name: str,
    title: str,
    measure: Measure,
    bands: RoundBands,
    note: str,
    y_range: tuple[float, float] | None = None,
) -> Chart:
    several = (bands.n > 0).sum() > 1
    unknown = f" Unknown, and in no band: {count(int(bands.unknown.sum()))}." if bands.unknown.any() else ""
    bands = bands.known()
    first, last = float(bands.round[0]), float(bands.round[-1])
    return Chart(
        name,
        f"{title}, by round" if several else title,
        _band(bands, measure) if several else _whisker(bands, measure),
        x_label="round",
        y_label=measure.heading,
        x_range=(first, last) if several else (first - 1.0, last + 1.0),
        y_range=y_range,
        note=f"{note}{unknown}",
    )


def _band(bands: RoundBands, measure: Measure) -> list[Series]:
    x, shown = bands.round.astype(float).tolist(), _shown(bands, measure)
    return [
        Series("10 to 90 %", x, (), shown["low_10"], shown["high_90"], mark="band", style=0),
        Series("median, 25 to 75 %", x, shown["median"], shown["low_25"], shown["high_75"], mark="line", style=0),
    ]


def _whisker(bands: RoundBands, measure: Measure) -> list[Series]:
    x, shown = bands.round.astype(float).tolist(), _shown(bands, measure)
    return [Series("median, 10 to 90 %", x, shown["median"], shown["low_10"], shown["high_90"], mark="points")]


def _shown(bands: RoundBands, measure: Measure) -> dict[str, list[float]]:
    names = ("low_10", "low_25", "median", "high_75", "high_90")
    return {name: (measure.times * getattr(bands, name)).tolist() for name in names}


def _over(n: npt.NDArray[np.int64], one: str, more: str) -> str:
    """Over how many the bands are, as a range where it differs by place."""
    high = int(n.max())
    low = int(n[n > 0].min(initial=high))
    range_ = count(high) if low == high else f"{count(low)} to {count(high)}"
    return f"Over {range_} {one if high == 1 else more}"


_REPLIES = ("reply", "replies")
_LOGPROB = Measure("logprob", "mean log-probability", "nat")


def _speakers(signals: Signals) -> Iterator[Chart]:
    sums = signals.tokens.kept
    speakers = signals.speakers()
    for speaker in sorted(speakers, key=lambda each: -sums[each].replies)[:_MOST_SPEAKERS]:
        name, whose = f"live-tokens-{_name(*speaker)}", _whose(signals, speaker)
        by_round = signals.spoken_rounds(speaker)
        if (by_round.n > 0).sum() > 1:
            note = f"{_over(by_round.n, *_REPLIES)} of debates with a verdict."
            yield _by_round(f"{name}-by-round", f"Token confidence of {whose}", _LOGPROB, by_round, note)
        yield _along(name, f"Token confidence along the replies of {whose}", signals.spoken(speaker))


def _whose(signals: Signals, speaker: Speaker) -> str:
    """Display name of a speaker, as long as it has to be."""
    others = [each for each in signals.speakers() if each[:2] == speaker[:2]]
    return f"{speaker.role}, {speaker.model}" + (f", {speaker.sampling.words}" if len(others) > 1 else "")


def _judged(signals: Signals) -> Iterator[Chart]:
    for domain, role in signals.groups():
        for model in signals.models(domain, role):
            for sampling in signals.samplings(domain, role, model=model):
                bands = signals.bands(domain, role, sampling, model=model)
                where = f"{role}, {domain}" if domain else role
                name = f"live-judged-{_name(domain, role, model, sampling)}"
                yield _along(name, f"Token confidence along the judged replies: {where}, {model}", bands)


def _along(name: str, title: str, bands: LogprobBands) -> Chart:
    x, known = bands.place.tolist(), bands.n > 0
    low, high = _drawn(bands.low_10, known), _drawn(bands.high_90, known)
    low_25, high_75 = _drawn(bands.low_25, known), _drawn(bands.high_75, known)
    return Chart(
        name,
        title,
        [
            Series("10 to 90 %", x, (), low, high, mark="band", style=0),
            Series("median, 25 to 75 %", x, _drawn(bands.median, known), low_25, high_75, mark="line", style=0),
        ],
        x_label="from the first token (0) to the last (1)",
        y_label="log-probability, nat",
        x_range=(0.0, 1.0),
        note=f"{_over(bands.n.max(keepdims=True), *_REPLIES)} of debates with a verdict.",
    )


def _drawn(values: Floats, known: npt.NDArray[np.bool_]) -> list[float | None]:
    return [float(value) if is_known else None for value, is_known in zip(values, known, strict=True)]


def _name(*parts: object) -> str:
    return "-".join(_plain(str(part)) for part in parts)


def _plain(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text)
