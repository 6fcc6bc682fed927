"""Trace of a debate's numbers, round by round, from its `round` events: as data, as a table, and as a text plot.

A protocol has a trace when its `round` events have fields of `RoundFigures`, whatever else it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from moot.deploy.results.report.blocks import Block, Table, TextFigure
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.text import natural_sort_key, number, visible_line
from moot.protocols.events import Figures, RoundFigures


@dataclass(frozen=True, slots=True)
class PlotPanel:
    """Plot panel: measures that share a scale.

    Attributes:
        title: of the plot.
        unit: of its axis; empty for pure numbers.
        top: upper end of the scale by definition; None for the values' own. The lower end is 0, or below for a fall.
    """

    title: str
    unit: str = ""
    top: float | None = None

    @property
    def axis(self) -> str:
        """Label of the axis.

        >>> PlotPanel("CRIT", "of 10").axis, PlotPanel("entropy", "nat").axis, PlotPanel("distance").axis
        ('CRIT (of 10)', 'entropy (nat)', 'distance')
        """
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Measure:
    """Measure: a field of `RoundFigures`, and its display.

    Attributes:
        key: the field's name, and its key in the record.
        name: display name.
        unit: display unit; empty for pure numbers.
        panel: its plot; None for the table only.
        times: factor from the recorded to the displayed number.
        digits: most displayed decimals.
    """

    key: str
    name: str
    unit: str = ""
    panel: PlotPanel | None = None
    times: float = 1.0
    digits: int = 3

    @property
    def heading(self) -> str:
        """Name with unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


KAPPA = PlotPanel("contentiousness kappa", "0 to 1", 1.0)
DISTANCE = PlotPanel("distance between the sides")
DIVERGENCE = PlotPanel("divergence", "nat")
ENTROPY = PlotPanel("entropy", "nat")
QUALITY = PlotPanel("quality of the arguments", "of 10", 10.0)
CHANGED = PlotPanel("answers changed", "agents")

MEASURES = (
    Measure("kappa", "kappa", panel=KAPPA),
    Measure("d", "D", panel=DISTANCE),
    Measure("changed", "answers changed", panel=CHANGED),
    Measure("wd", "WD", panel=DISTANCE),
    Measure("jsd", "JSD", "nat", DIVERGENCE),
    Measure("generalised_jsd", "JSD of all", "nat", DIVERGENCE),
    Measure("kl", "KL", "nat", DIVERGENCE),
    Measure("mi", "MI", "nat"),
    Measure("nmi", "NMI"),
    Measure("entropy", "H", "nat", ENTROPY),
    Measure("mixture_entropy", "H mixture", "nat", ENTROPY),
    Measure("ce", "CE", "nat"),
    Measure("information_gain", "gain", "nat"),
    Measure("crit", "CRIT", "of 10", QUALITY, times=10.0, digits=1),
    Measure("gamma", "Gamma", "of 10", QUALITY, times=10.0, digits=1),
)
"""Measures of rounds, in display order. Logarithms are natural."""

OPENINGS = Measure("m", "M", panel=PlotPanel("misalignment M of the openings"))
"""Measure that a gate notes of the openings, beside their D."""

BY_KEY = {measure.key: measure for measure in MEASURES}
"""Measures by key."""


class Series(FrozenModel):
    """Series of one number over the rounds.

    Attributes:
        key: of the measure, see `MEASURES`.
        name: display name.
        of: side or pair of sides; empty for the whole debate.
        values: one per round of the trace, as recorded; None is unknown, never 0.
    """

    key: str
    name: str
    of: str
    values: list[float | None]

    @property
    def measure(self) -> Measure:
        """Measure of the series."""
        return BY_KEY[self.key]

    @property
    def shown(self) -> list[float | None]:
        """Displayed values, in the measure's unit."""
        return [None if value is None else self.measure.times * value for value in self.values]

    @property
    def title(self) -> str:
        """Name with side or pair."""
        return f"{self.name} {self.of}" if self.of else self.name


class RoundTrace(FrozenModel):
    """Trace of a debate: round numbers in the protocol's count, and series in the order of `MEASURES`."""

    rounds: list[int]
    series: list[Series]


def build_round_trace(rounds: Iterable[RoundFigures]) -> RoundTrace | None:
    """Trace of a debate; None when it has no round with a number of `MEASURES`.

    Args:
        rounds: in any order.
    """
    ordered = sorted(rounds, key=lambda each: natural_sort_key(each.path))
    series = [one for measure in MEASURES for one in _series(measure, ordered)]
    return RoundTrace(rounds=[each.round for each in ordered], series=series) if series else None


def _series(measure: Measure, rounds: Sequence[RoundFigures]) -> Iterable[Series]:
    for side, values in values_by_side(measure, rounds):
        yield Series(key=measure.key, name=measure.name, of=side, values=values)


def values_by_side(measure: Measure, rounds: Sequence[RoundFigures]) -> Iterator[tuple[str, list[float | None]]]:
    """Values of a measure, one per round, for each side or pair with any; the side is empty for the whole debate.

    Args:
        rounds: in order.
    """
    found: list[Figures] = [getattr(each, measure.key) for each in rounds]
    sides = {side for value in found if isinstance(value, dict) for side in value}
    for side in sorted(sides, key=natural_sort_key):
        yield side, [value.get(side) if isinstance(value, dict) else None for value in found]
    if not sides and any(measure.key in each.model_fields_set for each in rounds):
        yield "", [float(len(value)) if isinstance(value, list) else number_or_none(value) for value in found]


def number_or_none(value: Figures) -> float | None:
    """The value if it is a single number."""
    return value if isinstance(value, float) else None


def format_aligned(values: Sequence[float | None], digits: int = 3) -> list[str]:
    """Texts of numbers, all with as many decimals as the longest needs; `unknown` values stay.

    >>> format_aligned([0.9, 0.75, None]), format_aligned([3.0, 0.0])
    (['0.90', '0.75', 'unknown'], ['3', '0'])
    """
    written = [number(value, digits).partition(".")[2] for value in values if value is not None]
    longest = max(map(len, written), default=0)
    return [number(None) if value is None else f"{value:z.{longest}f}" for value in values]


_GAP = 2

BLOCKS = "▁▂▃▄▅▆▇█"
"""Levels from lowest to highest where the terminal's encoding has them."""

PLAIN = "_.:-=+*#"
"""Levels in ASCII."""


def trace_blocks(trace: RoundTrace) -> list[Block]:
    """Table with a row per round and, for several rounds, a small plot."""
    columns = [format_aligned(series.shown, series.measure.digits) for series in trace.series]
    rows = [[str(n), *(cells[i] for cells in columns)] for i, n in enumerate(trace.rounds)]
    table = Table(
        "", ["round", *(f"{one.measure.heading} {visible_line(one.of)}".rstrip() for one in trace.series)], rows
    )
    plot = TextFigure(lambda width, plain: _plot(trace, width, PLAIN if plain else BLOCKS))
    return [table, plot] if len(rows) > 1 else [table]


def _plot(trace: RoundTrace, width: int, levels: str) -> Iterable[str]:
    """Line of characters per plotted series; series of one panel share a scale, stated before the first."""
    plotted = [(panel, one) for one in trace.series if (panel := one.measure.panel) is not None]
    names = [visible_line(one.title) for _, one in plotted]
    ends = [_ends(one.shown, one.measure) for _, one in plotted]
    beside = max(map(len, names), default=0) + max(map(len, ends), default=0) + 2 * _GAP
    across = max(1, width - beside)
    cells = max(1, min(3, across // len(trace.rounds)))
    for begin in range(0, len(trace.rounds), across):
        part = slice(begin, begin + across)
        if len(trace.rounds) > across:
            yield f"rounds {trace.rounds[part][0]} to {trace.rounds[part][-1]}"
        labelled: set[PlotPanel] = set()
        for (panel, one), name, end in zip(plotted, names, ends, strict=True):
            low, high = _scale(panel, [other.shown for its, other in plotted if its == panel])
            if panel not in labelled:
                labelled.add(panel)
                yield f"{panel.axis}, {number(low)} to {number(high)}"
            line = sparkline(one.shown[part], low, high, levels, cells)
            yield f"{name:<{max(map(len, names))}}{'':{_GAP}}{line}{'':{_GAP}}{end}".rstrip()


def _ends(values: Sequence[float | None], measure: Measure) -> str:
    known = [number(value, measure.digits) for value in values if value is not None]
    return f"{known[0]} to {known[-1]}" if known else number(None)


def _scale(panel: PlotPanel, several: Iterable[Sequence[float | None]]) -> tuple[float, float]:
    known = [value for values in several for value in values if value is not None]
    return min([0.0, *known]), max([panel.top or 0.0, *known])


def sparkline(values: Sequence[float | None], low: float, high: float, levels: str = BLOCKS, cells: int = 1) -> str:
    """Sparkline of `cells` characters per value; an unknown value is a gap, the lowest known one is not.

    Args:
        low, high: ends of the scale; where they are equal, every known value is at the lowest level.

    >>> sparkline([0.0, 0.5, None, 1.0], 0.0, 1.0)
    '▁▅ █'
    >>> sparkline([0.0, 0.5, None, 1.0], 0.0, 1.0, PLAIN, cells=2)
    '__==  ##'
    """
    return "".join(
        cells * (" " if value is None else levels[_level(value, low, high, len(levels))]) for value in values
    )


def _level(value: float, low: float, high: float, n: int) -> int:
    share = (value - low) / (high - low) if high > low else 0.0
    return min(n - 1, max(0, int(share * n)))
