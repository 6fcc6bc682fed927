"""Charts of a run in progress, as data like the report's charts; the page draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moot.actors.record.signals import Floats, LogprobBands, Signals
from moot.deploy.results.report.blocks import Chart, Series
from moot.deploy.results.rounds.round_trace import Measure
from moot.deploy.results.text import count
from moot.deploy.service.live.bands import SAMPLED, RoundBand
from moot.deploy.service.live.figures import RunningFigures


def live_charts(figures: RunningFigures) -> Iterator[Chart]:
    """Charts for which the run has numbers, in a stable order."""
    yield from _accuracy(figures)
    yield from _pace(figures)
    yield from _rounds(list(figures.rounds.bands()))
    yield from _trajectories(figures.trajectories.signals())


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


def _rounds(bands: Sequence[tuple[Measure, list[RoundBand]]]) -> Iterator[Chart]:
    panels = list(dict.fromkeys(measure.panel for measure, _ in bands if measure.panel is not None))
    for panel in panels:
        own = [(measure, rounds) for measure, rounds in bands if measure.panel == panel]
        most = max(band.n for _, rounds in own for band in rounds)
        sampled = f" Of more than {SAMPLED} values in a round a random sample." if most > SAMPLED else ""
        yield Chart(
            f"live-{own[0][0].key.replace('_', '-')}",
            panel.title[:1].upper() + panel.title[1:],
            [series for place, (measure, rounds) in enumerate(own) for series in _band(measure, rounds, place)],
            x_label="round",
            y_label=panel.axis,
            y_range=None if panel.top is None else (0.0, panel.top),
            note=f"Over the debates so far, all sides: median, 25 to 75 %, and 10 to 90 % in the pale band.{sampled}",
        )


def _band(measure: Measure, rounds: Sequence[RoundBand], style: int) -> Iterator[Series]:
    x = [float(band.round) for band in rounds]
    low, high = [band.low_10 for band in rounds], [band.high_90 for band in rounds]
    yield Series(f"{measure.name}, 10 to 90 %", x, (), low, high, mark="band", style=style)
    low, high = [band.low_25 for band in rounds], [band.high_75 for band in rounds]
    yield Series(measure.name, x, [band.median for band in rounds], low, high, mark="line", style=style)


def _trajectories(signals: Signals) -> Iterator[Chart]:
    for domain, role in signals.groups():
        for model in signals.models(domain, role):
            for place, sampling in enumerate(signals.samplings(domain, role, model=model)):
                bands = signals.bands(domain, role, sampling, model=model)
                name = "-".join(_plain(part) for part in (domain, role, model, str(place)))
                where = f"{role}, {domain}" if domain else role
                yield _trajectory(f"live-tokens-{name}", f"{where}, {model}", bands)


def _trajectory(name: str, whose: str, bands: LogprobBands) -> Chart:
    x, known = bands.place.tolist(), (bands.n > 0).tolist()

    def drawn(values: Floats) -> list[float | None]:
        return [float(value) if is_known else None for value, is_known in zip(values, known, strict=True)]

    return Chart(
        name,
        f"Log-probability along the judged replies: {whose}",
        [
            Series("10 to 90 %", x, (), drawn(bands.low_10), drawn(bands.high_90), mark="band", style=0),
            Series(
                "median, 25 to 75 %", x, drawn(bands.median), drawn(bands.low_25), drawn(bands.high_75), "line", (), 0
            ),
        ],
        x_label="from the first token (0) to the last (1)",
        y_label="log-probability",
        note=f"Over {count(int(bands.n.max()))} replies of debates that ended while the record was followed.",
    )


def _plain(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text)
