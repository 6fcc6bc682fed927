"""Does confidence say more about one role than about another? The same features in both, and the ratio of the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from moot.deploy.analysis.replies import QUALITY, Measured, Stratum, settings_of
from moot.deploy.analysis.settings import AnalysisSettings
from moot.deploy.analysis.strata_table import FIXED
from moot.deploy.analysis.sweep import Sweep
from moot.deploy.analysis.table import Column, Table, Value, with_ends
from moot.metrics.confidence_features import Feature
from moot.metrics.rank_correlation import somers_d
from moot.metrics.role_asymmetry import RoleResamples, association_difference, ratio_of_maxima

MEAN = Feature("logprob", "token 0", "full", "mean")
"""The feature whose differences a terminal shows."""

DIFFERENCES = (
    Column("setting", "data and roles"),
    Column("target", "target", short="target"),
    Column("feature", "feature"),
    Column("first", "first", short="first"),
    Column("second", "second", short="second"),
    Column("difference", "difference in strength", interval=True, short="difference"),
    Column("somers_first", "Somers' D, first"),
    Column("somers_second", "second"),
)

RATIOS = (
    Column("setting", "data and roles"),
    Column("over", "mean of the best over", short="mean of the best over"),
    Column("first", "first", short="first"),
    Column("second", "second", short="second"),
    Column("ratio", "ratio", interval=True, short="ratio"),
)


def role_comparison_tables(
    measured: Measured, strata: Sequence[Stratum], sweeps: Sequence[Sweep], settings: AnalysisSettings
) -> list[Table]:
    """Each pair of roles of one data set, model and sampling."""
    differences: list[dict[str, Value]] = []
    ratios: list[dict[str, Value]] = []
    for words, members in settings_of(strata):
        for first, second in combinations(members, 2):
            for kind in ("spearman", "auroc"):
                pair = [_sweep(sweeps, stratum, kind) for stratum in (first, second)]
                a, b = pair
                if a is None or b is None:
                    continue
                targets = [name for name in a.targets if name in b.targets]
                named: dict[str, Value] = {"setting": f"{words}: {first.role} - {second.role}", "kind": kind}
                differences += [named | row for row in _differences(measured, a, b, targets, settings)]
                ratios += [named | row for row in _ratios(a, b, targets, settings)]
    return [
        Table(
            "role_differences",
            "The same feature in both roles",
            differences,
            DIFFERENCES,
            terse=[row for row in differences if row["feature"] == MEAN.words],
            notes=(
                "Features named before anything was seen. Strength: |rho|, or for yes/no targets the AUROC's distance "
                "from one half; cases drawn for both roles at once.",
                "Somers' D looks at replies with different scores only, so roles with other score distributions can be "
                "compared.",
            ),
        ),
        Table(
            "role_ratios",
            "Best values, role over role",
            ratios,
            RATIOS,
            notes=(
                "Strength: |rho|, or the AUROC's distance from one half; log-probability features from token 0, as in "
                "the papers (.335 over .177, their mean of the best rho; AUROC .804 over .634, which is .304 over "
                ".134). A ratio of best values is no test: each is the luckiest of its sweep; the interval holds the "
                "luck of the choice.",
            ),
        ),
    ]


def _sweep(sweeps: Sequence[Sweep], stratum: Stratum, kind: str) -> Sweep | None:
    return next((each for each in sweeps if each.stratum is stratum and each.kind == kind), None)


def _resamples(a: Sweep, b: Sweep, targets: Sequence[str], features: Sequence[int]) -> RoleResamples:
    none = 0.5 if a.kind == "auroc" else 0.0
    columns = [[each.targets.index(name) for name in targets] for each in (a, b)]
    first, second = (
        each.resampled[:, features][:, :, chosen] - none for each, chosen in zip((a, b), columns, strict=True)
    )
    observed = [each.value[np.ix_(features, chosen)] - none for each, chosen in zip((a, b), columns, strict=True)]
    return RoleResamples(first, second, *observed)


def _differences(
    measured: Measured, a: Sweep, b: Sweep, targets: Sequence[str], settings: AnalysisSettings
) -> Iterator[dict[str, Value]]:
    names = [feature.name for feature in a.features]
    features = [names.index(name) for name in FIXED]
    found = association_difference(_resamples(a, b, targets, features))
    enough = [each.enough(settings)[features][:, [each.targets.index(name) for name in targets]] for each in (a, b)]
    known = np.where(enough[0] & enough[1], 1.0, np.nan)
    for t, target in enumerate(targets):
        for row, f in enumerate(features):
            values = [float(each.value[f, each.targets.index(target)]) for each in (a, b)]
            somers = [_somers(measured, each, f, target) for each in (a, b)]
            yield {
                "target": target,
                "feature": a.features[f].words,
                "first": values[0],
                "second": values[1],
                **with_ends(
                    "difference",
                    float(found.value[row, t]),
                    [float(end[row, t] * known[row, t]) for end in (found.low, found.high)],
                ),
                "somers_first": somers[0],
                "somers_second": somers[1],
            }


def _somers(measured: Measured, sweep: Sweep, f: int, target: str) -> float:
    rows = sweep.stratum.rows
    targets = measured.replies.ordinal if sweep.kind == "spearman" else measured.replies.binary
    return float(somers_d(measured.x[rows, f], targets[target][rows])[0, 0])


def _ratios(a: Sweep, b: Sweep, targets: Sequence[str], settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
    whole = [f for f, each in enumerate(a.features) if (each.signal, each.origin) == ("logprob", "token 0")]
    if a.kind == "auroc":
        over = {name: [name] for name in targets}
    else:
        over = {"every score": list(targets), "every dimension": [name for name in targets if name != QUALITY]}
    for words, chosen in over.items():
        places = [[each.targets.index(name) for name in chosen] for each in (a, b)]
        features = [
            f
            for f in whole
            if all(each.enough(settings)[f, columns].all() for each, columns in zip((a, b), places, strict=True))
        ]
        if not features or not chosen:
            continue
        found = ratio_of_maxima(_resamples(a, b, chosen, features))
        best = [_mean_of_best(each, features, columns) for each, columns in zip((a, b), places, strict=True)]
        yield {
            "over": words,
            "first": best[0],
            "second": best[1],
            **with_ends("ratio", float(found.value), (float(found.low), float(found.high))),
        }


def _mean_of_best(sweep: Sweep, features: Sequence[int], targets: Sequence[int]) -> float:
    """Mean over targets of the largest strength."""
    return float(np.nan_to_num(sweep.strength[np.ix_(features, targets)]).max(axis=0).mean())
