"""Confidence along the replies: mean probability by position, and bands from 0 to 100 % (the papers' Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from moot.deploy.analysis.replies import settings_of
from moot.deploy.analysis.trajectories import Trajectory
from moot.deploy.reading.plotting import OF_SIDES, plot_label
from moot.metrics.trajectory import LATE_START, OPENING_END, PLATEAU

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES, _ROW_INCHES, _HEAD_INCHES = 8.0, 2.4, 0.5


def by_position(found: Sequence[Trajectory]) -> Figure | None:
    """Mean token probability at each position, one line for each role; None when every curve was cut at once."""
    several = [
        (words, [each for each in found if each.stratum in members and len(each.by_position.mean)])
        for words, members in settings_of([each.stratum for each in found])
    ]
    several = [(words, curves) for words, curves in several if curves]
    if not several:
        return None
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(_WIDTH_INCHES, _HEAD_INCHES + _ROW_INCHES * len(several)), layout="constrained")
    places = drawn.subplots(len(several), sharex=True, squeeze=False).flatten()
    for axes, (words, curves) in zip(places, several, strict=True):
        for look, each in zip(OF_SIDES * len(curves), curves, strict=False):
            label = f"{plot_label(each.stratum.role, 24)} (n = {each.n:,})"
            axes.plot(each.by_position.mean, color=look.color, linestyle=look.dashes, label=label, linewidth=1.3)
        longest = max(len(each.by_position.mean) for each in curves)
        for place in (OPENING_END, *PLATEAU, LATE_START):
            if place < longest:
                axes.axvline(place, color="#b0b0b0", linewidth=0.8, linestyle=":")
        axes.set_title(plot_label(words, 96), fontsize=9.5, loc="left")
        axes.set_ylabel("mean probability")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    places[-1].set_xlabel("token")
    return drawn


def by_percent(found: Sequence[Trajectory]) -> Figure | None:
    """Log-probability from 0 to 100 % of a reply: mean line, 25-75 and 10-90 bands, a column for each role."""
    rows = [
        (words, [each for each in found if each.stratum in members])
        for words, members in settings_of([each.stratum for each in found])
    ]
    if not rows:
        return None
    from matplotlib.figure import Figure

    width = max(len(curves) for _, curves in rows)
    drawn = Figure(figsize=(_WIDTH_INCHES, _HEAD_INCHES + _ROW_INCHES * len(rows)), layout="constrained")
    grid = drawn.subplots(len(rows), width, sharex=True, sharey=True, squeeze=False)
    for places, (words, curves) in zip(grid, rows, strict=True):
        for axes in places[len(curves) :]:
            axes.set_visible(False)
        for axes, look, each in zip(places, OF_SIDES * width, curves, strict=False):
            _draw_bands(axes, look.color, each)
            axes.set_title(
                plot_label(f"{words}: {each.stratum.role} (n = {each.n:,})", 96 // width), fontsize=9, loc="left"
            )
        places[0].set_ylabel("log-probability")
    for axes in grid[-1]:
        axes.set_xlabel("% of the reply")
    return drawn


def _draw_bands(axes: Axes, color: str, each: Trajectory) -> None:
    points = np.arange(len(each.bands.n))
    axes.fill_between(points, each.bands.low_10, each.bands.high_90, color=color, alpha=0.15, linewidth=0)
    axes.fill_between(points, each.bands.low_25, each.bands.high_75, color=color, alpha=0.3, linewidth=0)
    axes.plot(points, each.bands.mean, color=color, linewidth=1.3)
    axes.set_xlim(0, 100)
