"""Figures of the analysis: confidence along the replies (the papers' Figure 2), scores (Figure 3), divergences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from moot.deploy.results.analysis.replies import QUALITY, Replies, Stratum, settings_of
from moot.deploy.results.analysis.sweep import Sweep
from moot.deploy.results.analysis.table import Value
from moot.deploy.results.analysis.trajectories import ConfidenceTrajectory
from moot.deploy.results.plotting import OF_SIDES, plot_label
from moot.metrics.confidence_features import STATISTICS, WINDOWS
from moot.metrics.trajectory import LATE_START, OPENING_END, PLATEAU

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES = 8.0
_CURVE_INCHES, _CURVE_HEAD_INCHES = 2.4, 0.5
_BAR_INCHES, _BAR_HEAD_INCHES = 0.32, 1.3
_MAP_INCHES, _MAP_COLUMNS = 4.4, 2
_SHADES = ("#D55E00", "#E69F00", "#F0E442", "#56B4E9", "#0072B2")


def _blank(height: float) -> Figure:
    """An empty figure of this size in inches; loads Matplotlib only when a figure is drawn."""
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")


def _by_setting(found: Sequence[ConfidenceTrajectory]) -> list[tuple[str, list[ConfidenceTrajectory]]]:
    """Trajectories grouped by setting, one for each role, with the setting's name."""
    settings = settings_of([each.stratum for each in found])
    return [(words, [each for each in found if each.stratum in members]) for words, members in settings]


def by_position(found: Sequence[ConfidenceTrajectory]) -> Figure | None:
    """Line plot of the mean token probability by position, one line per role; None when no curve has a point."""
    several = _by_setting([each for each in found if len(each.by_position.mean)])
    if not several:
        return None
    drawn = _blank(_CURVE_HEAD_INCHES + _CURVE_INCHES * len(several))
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


def by_percent(found: Sequence[ConfidenceTrajectory]) -> Figure | None:
    """Band plot of the log-probability from 0 to 100 % of a reply: mean, 25-75 and 10-90 bands, one column per role."""
    rows = _by_setting(found)
    if not rows:
        return None
    width = max(len(curves) for _, curves in rows)
    drawn = _blank(_CURVE_HEAD_INCHES + _CURVE_INCHES * len(rows))
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


def _draw_bands(axes: Axes, color: str, each: ConfidenceTrajectory) -> None:
    points = np.arange(len(each.bands.n))
    axes.fill_between(points, each.bands.low_10, each.bands.high_90, color=color, alpha=0.15, linewidth=0)
    axes.fill_between(points, each.bands.low_25, each.bands.high_75, color=color, alpha=0.3, linewidth=0)
    axes.plot(points, each.bands.mean, color=color, linewidth=1.3)
    axes.set_xlim(0, 100)


def score_distributions(replies: Replies, strata: Sequence[Stratum]) -> Figure | None:
    """Stacked bars of the scores' distribution, for each stratum and dimension; scores are rounded to whole ones."""
    bars: list[tuple[str, dict[int, float], int]] = []
    for stratum in strata:
        for name, values in replies.scores.items():
            known = values[stratum.rows]
            known = known[np.isfinite(known)]
            if len(known):
                levels, counts = np.unique(np.rint(known).astype(int), return_counts=True)
                shares = dict(zip(levels.tolist(), (counts / len(known)).tolist(), strict=True))
                bars.append((f"{stratum.words}: {name.replace('_', ' ')}", shares, len(known)))
    if not bars:
        return None
    highest = max(level for _, shares, _ in bars for level in shares)
    drawn = _blank(_BAR_HEAD_INCHES + _BAR_INCHES * len(bars))
    axes = drawn.subplots()
    for row, (_, shares, n) in enumerate(bars):
        left = 0.0
        for level, share in shares.items():
            color = _SHADES[-1 - (highest - level) % len(_SHADES)]
            axes.barh(row, share, left=left, color=color, edgecolor="white")
            if share > 0.06:
                words = f"{level}: {100 * share:.0f} %"
                ink = "white" if color == _SHADES[-1] else "black"
                axes.text(left + share / 2, row, words, ha="center", va="center", fontsize=8, color=ink)
            left += share
        axes.text(1.01, row, f"n = {n:,}", va="center", fontsize=8)
    axes.set_yticks(range(len(bars)), [plot_label(words, 44) for words, _, _ in bars], fontsize=8.5)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the replies")
    axes.grid(False)
    return drawn


def divergences(rows: Sequence[Mapping[str, Value]]) -> Figure | None:
    """Prevalence of each divergence with its interval, and a cross at the value expected under independence."""
    if not rows:
        return None
    drawn = _blank(_BAR_HEAD_INCHES + _BAR_INCHES * len(rows))
    axes = drawn.subplots()
    for place, row in enumerate(rows):
        if row["prevalence_low"] is not None:
            ends = [_number(row["prevalence_low"]), _number(row["prevalence_high"])]
            axes.plot(ends, [place, place], color="#767676", linewidth=1.2)
    places = range(len(rows))
    look = OF_SIDES[0]
    axes.plot([_number(row["prevalence"]) for row in rows], places, look.marker, color=look.color, label="found")
    expected = [_number(row["independent"]) for row in rows]
    axes.plot(expected, places, "x", color=OF_SIDES[1].color, label="if independent")
    axes.set_yticks(places, [plot_label(f"{row['stratum']}: {row['divergence']}", 44) for row in rows], fontsize=8.5)
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("share of the replies")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return drawn


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def association_heatmap(sweeps: Sequence[Sweep]) -> Figure | None:
    """Heatmap of Spearman's rho of Q with every log-probability feature from token 0; None where Q is in no sweep.

    Cells are white at 0, blue above, orange below, and hatched where unknown.
    """
    there = [each for each in sweeps if each.kind == "spearman" and QUALITY in each.targets]
    if not there:
        return None
    from matplotlib.colors import LinearSegmentedColormap

    maps = [_map(each) for each in there]
    most = max(float(np.nanmax(np.abs(each), initial=0.0)) for each in maps) or 1.0
    colors = LinearSegmentedColormap.from_list("moot", ["#D55E00", "#ffffff", "#0072B2"])
    rows = -(-len(there) // _MAP_COLUMNS)
    drawn = _blank(_MAP_INCHES * rows)
    places = drawn.subplots(rows, _MAP_COLUMNS, squeeze=False).flatten()
    for axes in places[len(there) :]:
        axes.set_visible(False)
    for axes, each, values in zip(places, there, maps, strict=False):
        axes.set_facecolor("#e4e4e4")
        image = axes.imshow(values, cmap=colors, vmin=-most, vmax=most, aspect="auto")
        axes.set_xticks(range(len(STATISTICS)), STATISTICS, rotation=45, ha="right", fontsize=8)
        axes.set_yticks(range(len(WINDOWS)), WINDOWS, fontsize=8)
        axes.grid(False)
        axes.set_title(plot_label(each.stratum.words, 40), fontsize=9.5, loc="left")
    drawn.colorbar(image, ax=places[: len(there)].tolist(), label="Spearman's rho with Q", shrink=0.6)
    return drawn


def _map(sweep: Sweep) -> np.ndarray:
    found = np.full((len(WINDOWS), len(STATISTICS)), np.nan)
    t = sweep.targets.index(QUALITY)
    for f, feature in enumerate(sweep.features):
        if feature.signal == "logprob" and feature.origin == "token 0":
            found[WINDOWS.index(feature.window), STATISTICS.index(feature.statistic)] = sweep.value[f, t]
    return found
