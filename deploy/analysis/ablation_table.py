"""What the window and what the statistic is worth: the sweep's strengths, taken together one way and the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from moot.deploy.analysis.settings import AnalysisSettings
from moot.deploy.analysis.sweep import Sweep
from moot.deploy.analysis.table import Column, Table, Value
from moot.deploy.analysis.top_features import may_rank
from moot.metrics.confidence_features import STATISTICS, WINDOWS

SHOWN = (
    Column("stratum", "stratum"),
    Column("target", "target"),
    Column("signal", "signal"),
    Column("origin", "from"),
    Column("part", "window or statistic"),
    Column("features", "features", digits=None),
    Column("median", "median strength"),
    Column("best", "best strength"),
    Column("best_feature", "best feature"),
)


def ablation_table(sweeps: Sequence[Sweep], settings: AnalysisSettings) -> Table:
    """For each window the statistics, and for each statistic the windows, in each stratum and target.

    Of the features that `top_features` ranks: others have replies, or replies of a class, too few.
    """
    return Table(
        name="ablation",
        title="Which window, which statistic",
        rows=[row for sweep in sweeps for row in _rows(sweep, settings)],
        shown=SHOWN,
        notes=(
            "Strength: |rho|, or the AUROC's distance from one half. A best value is that of several, so optimistic.",
        ),
        in_files_only=True,
    )


def _rows(sweep: Sweep, settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
    enough = sweep.enough(settings)
    for t, target in enumerate(sweep.targets):
        for signal, origin, numbers in sweep.blocks():
            for kind, names in (("window", WINDOWS), ("statistic", STATISTICS)):
                for name in names:
                    chosen = [f for f in numbers.tolist() if getattr(sweep.features[f], kind) == name]
                    usable = [
                        f
                        for f in chosen
                        if enough[f, t]
                        and np.isfinite(sweep.value[f, t])
                        and (kind == "statistic" or may_rank(sweep.features[f]))
                    ]
                    strengths = sweep.strength[usable, t]
                    best = usable[int(strengths.argmax())] if usable else None
                    yield {
                        "stratum": sweep.stratum.words,
                        **sweep.stratum.keys,
                        "target": target,
                        "signal": signal,
                        "origin": origin,
                        "kind": kind,
                        "part": name,
                        "features": len(usable),
                        "median": float(np.median(strengths)) if usable else None,
                        "best": float(strengths.max()) if usable else None,
                        "best_feature": None if best is None else sweep.features[best].words,
                    }
