"""The numbers of a round that are shown, whatever the protocol: their names, units and order.

A protocol has a trace when its `round` events use these keys; nothing else about it needs to be known.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Panel:
    """Measures that share a scale, and so a plot.

    Attributes:
        title: what is plotted.
        unit: of its axis, empty for pure numbers.
        top: where the scale ends by definition; None when the values decide. It begins at 0, or below for a fall.
    """

    title: str
    unit: str = ""
    top: float | None = None

    @property
    def axis(self) -> str:
        """The scale in words.

        >>> Panel("CRIT", "of 10").axis, Panel("entropy", "nat").axis, Panel("distance").axis
        ('CRIT (of 10)', 'entropy (nat)', 'distance')
        """
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Measure:
    """A key of a `round` event: a number, a mapping of sides or pairs of sides to numbers, or a list to be counted.

    Attributes:
        key: in the event's data.
        name: as it is shown.
        unit: as people see it; empty for pure numbers.
        panel: where it is plotted; None for what only the table shows.
        times: what people see is the recorded number times this.
        digits: what people see at most after the point.
    """

    key: str
    name: str
    unit: str = ""
    panel: Panel | None = None
    times: float = 1.0
    digits: int = 3

    @property
    def heading(self) -> str:
        """Its name with its unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


KAPPA = Panel("contentiousness kappa", "0 to 1", 1.0)
DISTANCE = Panel("distance between the sides")
DIVERGENCE = Panel("divergence", "nat")
ENTROPY = Panel("entropy", "nat")
QUALITY = Panel("quality of the arguments", "of 10", 10.0)
CHANGED = Panel("answers changed", "agents")

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
"""What is known of rounds, in the order in which it is shown. Logarithms are natural."""

BY_KEY = {measure.key: measure for measure in MEASURES}
"""The same by key."""
