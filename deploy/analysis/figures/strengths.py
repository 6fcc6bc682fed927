"""Which window and which statistic goes with quality: a map for each stratum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from moot.deploy.analysis.replies import QUALITY
from moot.deploy.analysis.sweep import Sweep
from moot.deploy.reading.plotting import plot_label
from moot.metrics.confidence_features import STATISTICS, WINDOWS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 2
_WIDTH_INCHES, _ROW_INCHES = 8.0, 4.4


def strengths(sweeps: Sequence[Sweep]) -> Figure | None:
    """Spearman's rho of Q with every log-probability feature from token 0; None where Q is in no sweep.

    Cells are white at 0, blue above, orange below, and hatched where nothing is known.
    """
    there = [each for each in sweeps if each.kind == "spearman" and QUALITY in each.targets]
    if not there:
        return None
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    maps = [_map(each) for each in there]
    most = max(float(np.nanmax(np.abs(each), initial=0.0)) for each in maps) or 1.0
    colors = LinearSegmentedColormap.from_list("moot", ["#D55E00", "#ffffff", "#0072B2"])
    rows = -(-len(there) // _COLUMNS)
    drawn = Figure(figsize=(_WIDTH_INCHES, _ROW_INCHES * rows), layout="constrained")
    places = drawn.subplots(rows, _COLUMNS, squeeze=False).flatten()
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
