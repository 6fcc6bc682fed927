"""Feature sweep: the association of every feature with every target, its top features, and the roles compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from moot.deploy.results.figures.judged_replies import FLAG, QUALITY, ReplyFeatures, Stratum, settings_of
from moot.deploy.results.figures.token_confidence import AnalysisSettings, AnalysisTable, Column, Value, with_interval
from moot.deploy.results.report.blocks import Chart, Guide, Series
from moot.deploy.results.text import finite_or_none
from moot.metrics.class_separation import auroc_matrix, folded_auroc, point_biserial_matrix, within_groups_auroc
from moot.metrics.cluster_bootstrap import (
    Weights,
    bootstrap_error,
    cluster_weights,
    resampled_auroc,
    resampled_spearman,
)
from moot.metrics.cluster_permutation import Statistic, permutation_test
from moot.metrics.confidence_features import STATISTICS, WINDOWS, Feature
from moot.metrics.distribution import Floats
from moot.metrics.held_out import held_out_selection
from moot.metrics.jackknife import bounded_interval
from moot.metrics.rank_correlation import (
    kendall_matrix,
    pairwise_n,
    partial_spearman,
    somers_d,
    spearman_matrix,
    within_groups_spearman,
)
from moot.metrics.role_asymmetry import RoleResamples, association_difference, ratio_of_maxima
from moot.metrics.significance import benjamini_hochberg


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Associations of one kind in one stratum.

    Arrays have the shape `(F + 1, T)` unless stated otherwise; the last row is the baseline, the reply's length.

    Attributes:
        stratum: the stratum.
        kind: `spearman` for ordinal targets, or `auroc` for binary targets (directed: above .5 when high values of the
            feature go with yes).
        features: the F features, without the baseline.
        targets: names of the T targets.
        n: number of replies with both feature and target.
        rarer: number of replies of the rarer class of a binary target; n for other targets.
        value: the association; NaN where it is undefined.
        low, high: 95 % interval of the association, by cluster bootstrap.
        second: Kendall's tau-b for `spearman`, the point-biserial correlation for `auroc`.
        given_length: partial rank correlation given the reply's length, of both kinds.
        within_openings: association within groups of replies with the same opening.
        p: p-value by permutation of clusters.
        max_p: p-value against the largest association over the features of one signal and origin; NaN for features of
            too few replies.
        q: Benjamini-Hochberg over the whole sweep; NaN for the baseline.
        movable: share of the replies in exchangeable groups, shape `(T,)`; at 0 there are no p-values.
        resampled: association in each of B resamples, shape `(B, F + 1, T)`.
        clusters: number of clusters of the stratum.
    """

    stratum: Stratum
    kind: Statistic
    features: tuple[Feature, ...]
    targets: tuple[str, ...]
    n: npt.NDArray[np.int64]
    rarer: npt.NDArray[np.int64]
    value: Floats
    low: Floats
    high: Floats
    second: Floats
    given_length: Floats
    within_openings: Floats
    p: Floats
    max_p: Floats
    q: Floats
    movable: Floats
    resampled: Floats
    clusters: int

    def enough(self, settings: AnalysisSettings) -> npt.NDArray[np.bool_]:
        """Whether each feature has enough replies to be ranked for each target, shape `(F + 1, T)`."""
        least = settings.least_n if self.kind == "spearman" else settings.least_class
        return (self.n >= settings.least_n) & (self.rarer >= least)

    @property
    def strength(self) -> Floats:
        """Strength: |rho| in [0, 1], or the AUROC's distance from one half in [0, .5]."""
        return np.abs(self.value - (0.5 if self.kind == "auroc" else 0.0))


def feature_blocks(features: Sequence[Feature]) -> Iterator[tuple[str, str, npt.NDArray[np.int64]]]:
    """Blocks of features as (signal, origin, indices of the features); the papers' sweep is one block."""
    keys = [(feature.signal, feature.origin) for feature in features]
    for key in dict.fromkeys(keys):
        yield *key, np.array([number for number, other in enumerate(keys) if other == key], np.int64)


def run_sweep(measured: ReplyFeatures, strata: Sequence[Stratum], settings: AnalysisSettings) -> list[Sweep]:
    """Sweeps of the strata with at least `settings.too_few` replies with features."""
    kinds: list[tuple[Statistic, Mapping[str, Floats]]] = [
        ("spearman", measured.replies.ordinal),
        ("auroc", measured.replies.binary),
    ]
    found = []
    for _, members in settings_of(strata):
        # The roles of one setting share their resamples: a case is drawn for all its roles at once.
        group = measured.replies.group
        clusters = np.unique(np.concatenate([group[stratum.rows] for stratum in members]))
        weights = cluster_weights(clusters, settings.resamples, settings.seed)
        for stratum in members:
            if int(np.isfinite(measured.x[stratum.rows]).any(axis=1).sum()) < settings.too_few:
                continue
            drawn = weights[:, np.searchsorted(clusters, group[stratum.rows])]
            for kind, targets in kinds:
                of_stratum = {name: values[stratum.rows] for name, values in targets.items()}
                known = {name: values for name, values in of_stratum.items() if np.isfinite(values).any()}
                if known:
                    found.append(_sweep(measured, stratum, kind, known, drawn, settings))
    return _with_q(found)


def _sweep(
    measured: ReplyFeatures,
    stratum: Stratum,
    kind: Statistic,
    targets: Mapping[str, Floats],
    weights: Weights,
    settings: AnalysisSettings,
) -> Sweep:
    rows = stratum.rows
    length = measured.length[rows]
    x = np.column_stack([measured.x[rows], length])
    y = np.column_stack(list(targets.values()))
    openings = measured.replies.opening[rows].astype(str)
    ranked = kind == "spearman"
    value = spearman_matrix(x, y) if ranked else _varied(auroc_matrix(x, y), x, y)
    resampled = (resampled_spearman if ranked else resampled_auroc)(x, y, weights)
    clusters = len(np.unique(measured.replies.group[rows]))
    low, high = bounded_interval(value, bootstrap_error(resampled, clusters), clusters, lowest=-1.0 if ranked else 0.0)
    n = pairwise_n(x, y)
    rarer = n if ranked else np.minimum(pairwise_n(x, _only(y, 1.0)), pairwise_n(x, _only(y, 0.0)))
    if not ranked:  # resamples of a class with very few replies underestimate the variance
        low, high = (np.where(rarer >= settings.least_class, end, np.nan) for end in (low, high))
    p, max_p, movable = _tests(measured, stratum, x, y, n, kind, settings)
    return Sweep(
        stratum=stratum,
        kind=kind,
        features=measured.features,
        targets=tuple(targets),
        n=n,
        rarer=rarer,
        value=value,
        low=low,
        high=high,
        second=kendall_matrix(x, y) if ranked else point_biserial_matrix(x, y),
        given_length=partial_spearman(x, y, length),
        within_openings=(within_groups_spearman if ranked else within_groups_auroc)(x, y, openings),
        p=p,
        max_p=max_p,
        movable=movable,
        q=np.full(value.shape, np.nan),
        resampled=resampled,
        clusters=clusters,
    )


def _tests(
    measured: ReplyFeatures,
    stratum: Stratum,
    x: Floats,
    y: Floats,
    n: npt.NDArray[np.int64],
    kind: Statistic,
    settings: AnalysisSettings,
) -> tuple[Floats, Floats, Floats]:
    """Permutation tests of a sweep: its `p`, `max_p` and `movable`.

    Features of few replies are excluded from the maximum, because by chance they have the largest associations.
    """
    clusters, slots = measured.replies.group[stratum.rows], measured.replies.slot[stratum.rows].astype(str)
    p, max_p = np.full(n.shape, np.nan), np.full(n.shape, np.nan)
    movable = np.zeros(y.shape[1])
    for targets, enough in targets_by_features(n >= settings.least_n):
        parts = [numbers[enough[numbers]] for _, _, numbers in feature_blocks(measured.features)]
        for numbers in [*parts, np.flatnonzero(~enough[:-1]), np.array([x.shape[1] - 1])]:
            if not len(numbers):
                continue
            tested = permutation_test(
                x[:, numbers], y[:, targets], clusters, settings.permutations, settings.seed, kind, slots
            )
            where = np.ix_(numbers, targets)
            p[where] = tested.p_value
            max_p[where] = np.where(enough[numbers][:, np.newaxis], tested.max_p_value, np.nan)
            movable[targets] = tested.movable
    return p, max_p, movable


def targets_by_features(enough: npt.NDArray[np.bool_]) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """Groups of targets for which the same features have enough replies: their indices, and a mask of the features."""
    masks, kind = np.unique(enough, axis=1, return_inverse=True)
    for number in range(masks.shape[1]):
        yield np.flatnonzero(kind.ravel() == number), masks[:, number]


def _only(flags: Floats, value: float) -> Floats:
    """Flags that equal a value; NaN elsewhere."""
    return np.where(flags == value, flags, np.nan)


def _varied(area: Floats, x: Floats, y: Floats) -> Floats:
    """AUROC; NaN where the feature does not vary over the replies with both, because .5 is then no observation."""
    ranges = np.stack([_spread(x[~np.isnan(target)]) for target in y.T], axis=1)
    return np.where(ranges > 0.0, area, np.nan)


def _spread(x: Floats) -> Floats:
    """Range of the known values, shape `(F,)`; 0 without any."""
    least, greatest = np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0)
    return np.asarray(np.nan_to_num(greatest - least), np.float64)


def _with_q(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """Sweeps with q-values: Benjamini-Hochberg over all tests of all strata, without the baselines."""
    if not sweeps:
        return []
    adjusted = benjamini_hochberg(np.concatenate([each.p[:-1].ravel() for each in sweeps]))
    found, at = [], 0
    for each in sweeps:
        count = each.p[:-1].size
        q = np.full(each.p.shape, np.nan)
        q[:-1] = adjusted[at : at + count].reshape(each.p[:-1].shape)
        found.append(replace(each, q=q))
        at += count
    return found


TOP = 3

TOP_FEATURES = (
    Column("stratum", "stratum"),
    Column("target", "target", short="target"),
    Column("rank", "#", digits=None),
    Column("feature_words", "feature", short="best feature"),
    Column("n", "n", digits=None),
    Column("rarer", "of the rarer class", digits=None),
    Column("value", "rho / AUROC", interval=True, short="value"),
    Column("second", "tau / PB"),
    Column("folded", "folded"),
    Column("direction", "direction", short="confident ->"),
    Column("q", "q", is_p=True),
    Column("max_p", "p, max", is_p=True, short="p, max"),
    Column("held_out", "held out", short="held out"),
    Column("length_value", "length"),
)


def top_features_table(measured: ReplyFeatures, sweeps: Sequence[Sweep], settings: AnalysisSettings) -> AnalysisTable:
    """Top three features for each stratum, target, signal and origin.

    A feature with the same ranking of the replies as a stronger one (the variance and the standard deviation, two
    windows with the same tokens) is excluded, as is a feature of fewer than `settings.least_n` replies.
    """
    rows = [row for each in sweeps for row in _rows(measured, each, settings)]
    # No interval in a terminal: it ignores the selection, and a terminal has room for one caveat only.
    terse = [{name: value for name, value in row.items() if name not in ("value_low", "value_high")} for row in rows]
    return AnalysisTable(
        name="top_features",
        title="Top features for each target",
        rows=rows,
        shown=TOP_FEATURES,
        terse=[row for row in terse if (row["rank"], row["signal"], row["origin"]) == (1, "logprob", "token 0")],
        notes=(
            "Spearman's rho; for the flag and for correct the AUROC, above .5 when a high value goes with yes.",
            "The best of many features is an optimistic figure. `held out`: the value, on held-out cases, of the "
            f"feature chosen on the others ({settings.folds} folds), in the direction found there; compare it with "
            "`folded`, the value in either direction, as the papers print it. `p, max` is the chance that the "
            "best of the sweep is this good when nothing is related.",
            "`length` is the value of the reply's length alone.",
        ),
    )


def _rows(measured: ReplyFeatures, sweep: Sweep, settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
    held_out = {
        (signal, origin): _held_out(measured, sweep, part, settings)
        for signal, origin, part in feature_blocks(sweep.features)
    }
    for t in range(len(sweep.targets)):
        for signal, origin, numbers in feature_blocks(sweep.features):
            for place, f in enumerate(_top(measured, sweep, numbers, t, settings), start=1):
                row = association(sweep, f, t)
                yield {
                    **row,
                    "rank": place,
                    "held_out": float(held_out[signal, origin][t]) if place == 1 else None,
                    "length_value": float(sweep.value[-1, t]),
                    "signal": signal,
                    "origin": origin,
                }


def _top(
    measured: ReplyFeatures, sweep: Sweep, numbers: npt.NDArray[np.int64], t: int, settings: AnalysisSettings
) -> list[int]:
    """Indices of the strongest features, without those that rank the replies as a stronger one does."""
    x = measured.x[sweep.stratum.rows]
    chosen: list[int] = []
    for f in _rank(sweep, numbers, t, settings):
        if len(chosen) == TOP:
            break
        known = np.isfinite(x[:, f])
        same = [g for g in chosen if (np.isfinite(x[:, g]) == known).all()]
        if not same or (np.abs(spearman_matrix(x[:, [f]], x[:, same])) < 1.0 - 1e-9).all():
            chosen.append(f)
    return chosen


def _rank(sweep: Sweep, numbers: npt.NDArray[np.int64], t: int, settings: AnalysisSettings) -> list[int]:
    """Indices of the features, the strongest first; ties in the features' order."""
    enough = sweep.enough(settings)[:, t] & np.isfinite(sweep.value[:, t])
    usable = [f for f in numbers.tolist() if may_rank(sweep.features[f]) and enough[f]]
    return sorted(usable, key=lambda f: -round(float(sweep.strength[f, t]), 12))


def may_rank(feature: Feature) -> bool:
    """Whether a feature is ranked; the variance is not, because it ranks replies as the standard deviation does."""
    return feature.statistic != "variance"


def _held_out(
    measured: ReplyFeatures, sweep: Sweep, numbers: npt.NDArray[np.int64], settings: AnalysisSettings
) -> Floats:
    """Held-out value for each target, shape `(T,)`; NaN where there are fewer cases than folds."""
    rows = sweep.stratum.rows
    targets = measured.replies.ordinal if sweep.kind == "spearman" else measured.replies.binary
    clusters = measured.replies.group[rows]
    found = np.full(len(sweep.targets), np.nan)
    if len(np.unique(clusters)) < settings.folds:
        return found
    ranked = numbers[[may_rank(sweep.features[f]) for f in numbers.tolist()]]
    for chosen, enough in targets_by_features(sweep.n[ranked] >= settings.least_n):
        found[chosen] = held_out_selection(
            measured.x[np.ix_(rows, ranked[enough])],
            np.column_stack([targets[sweep.targets[t]][rows] for t in chosen.tolist()]),
            clusters,
            folds=settings.folds,
            seed=settings.seed,
            statistic=sweep.kind,
        ).value
    return found


ABLATION = (
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


def ablation_table(sweeps: Sequence[Sweep], settings: AnalysisSettings) -> AnalysisTable:
    """Ablation of the sweep: each window over all statistics, each statistic over all windows, by stratum and target.

    It covers the features with enough replies for a rank, and of a binary target enough of the rarer class.
    """
    return AnalysisTable(
        name="ablation",
        title="Which window, which statistic",
        rows=[row for sweep in sweeps for row in _ablation_rows(sweep, settings)],
        shown=ABLATION,
        notes=(
            "Strength: |rho|, or the AUROC's distance from one half. A best value is that of several, so optimistic.",
        ),
        in_files_only=True,
    )


def _ablation_rows(sweep: Sweep, settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
    enough = sweep.enough(settings)
    for t, target in enumerate(sweep.targets):
        for signal, origin, numbers in feature_blocks(sweep.features):
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
                        **sweep.stratum.named,
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


LENGTH = "length"
"""Name of the baseline feature: the number of the reply's tokens."""

ASSOCIATIONS = (
    Column("stratum", "stratum"),
    Column("target", "target"),
    Column("feature_words", "feature"),
    Column("n", "n", digits=None),
    Column("rarer", "of the rarer class", digits=None),
    Column("value", "association", interval=True),
    Column("second", "tau / PB"),
    Column("p", "p", is_p=True),
    Column("q", "q", is_p=True),
    Column("max_p", "p, max", is_p=True),
    Column("direction", "direction"),
)


def associations_table(sweeps: Sequence[Sweep]) -> AnalysisTable:
    """Table of all associations of the sweep."""
    return AnalysisTable(
        name="associations",
        title="Every feature against every target",
        rows=[
            association(each, f, t)
            for each in sweeps
            for t in range(len(each.targets))
            for f in range(len(each.features) + 1)
        ],
        shown=ASSOCIATIONS,
        notes=(
            "Spearman's rho for scores, with Kendall's tau-b beside it; for yes/no targets the directed AUROC (above "
            ".5 when a high value goes with yes), with the point-biserial correlation beside it.",
            "Intervals: 95 %, cases resampled. p: cases permuted; q: Benjamini-Hochberg over the sweep; p, max: "
            "against the largest association of all features of the same signal and origin.",
        ),
        in_files_only=True,
    )


def association(sweep: Sweep, f: int, t: int) -> dict[str, Value]:
    """Row of the association of a feature and a target; the index after the last feature is the reply's length."""
    feature = sweep.features[f] if f < len(sweep.features) else None
    value = float(sweep.value[f, t])
    further = ("second", "given_length", "within_openings", "p", "q", "max_p")
    return {
        **sweep.stratum.named,
        "target": sweep.targets[t],
        "statistic": "Spearman's rho" if sweep.kind == "spearman" else "AUROC",
        "feature": feature.name if feature else LENGTH,
        "feature_words": feature.words if feature else "Length in tokens (baseline)",
        **{name: getattr(feature, name, None) for name in ("signal", "origin", "window")},
        "window_statistic": feature.statistic if feature else None,
        "n": int(sweep.n[f, t]),
        "rarer": int(sweep.rarer[f, t]),
        **with_interval("value", value, (float(sweep.low[f, t]), float(sweep.high[f, t]))),
        "folded": float(folded_auroc(value)) if sweep.kind == "auroc" else abs(value),
        **{name: float(getattr(sweep, name)[f, t]) for name in further},
        "exchangeable": float(sweep.movable[t]),
        "direction": direction(sweep, f, t),
    }


def direction(sweep: Sweep, f: int, t: int) -> str:
    """Direction of the association for a confident reply: more flags are worse, more of any other target is better.

    It is empty for a feature without orientation (a slope, the length) and without an association.
    """
    orientation = sweep.features[f].orientation if f < len(sweep.features) else 0
    deviation = float(sweep.value[f, t]) - (0.5 if sweep.kind == "auroc" else 0.0)
    sign = orientation * (1 if deviation > 0 else -1 if deviation < 0 else 0) * (-1 if sweep.targets[t] == FLAG else 1)
    return {1: "confident -> better", -1: "confident -> worse", 0: ""}[sign]


FIXED = ("logprob.full.mean", "logprob.first-3.range", "logprob.first-10.mean")
"""Features that are compared across strata and roles, specified in advance."""

MOSTLY = 0.8
"""Share of exchangeable replies below which a caveat states it."""

STRATA = (
    Column("stratum", "stratum"),
    Column("family", "model family"),
    Column("size_b", "size, 10^9", digits=None),
    Column("domain", "domain"),
    Column("replies", "replies", digits=None, short="replies"),
    Column("with_logprobs", "with log-probabilities", digits=None, short="log-probs"),
    Column("quality_mean", "mean Q", digits=2, short="mean Q"),
    Column("accuracy", "correct", short="correct"),
    *(
        Column(f"rho_{number}", f"rho(Q, {name.removeprefix('logprob.')})", interval=True)
        for number, name in enumerate(FIXED)
    ),
    Column("auroc", "AUROC of the flag, first-3.range", interval=True),
    Column("remark", "remark", short="remark"),
)

_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*[bB](?![a-zA-Z])")
_WORD = re.compile(r"[A-Za-z]+")


def strata_table(
    measured: ReplyFeatures, strata: Sequence[Stratum], sweeps: Sequence[Sweep], settings: AnalysisSettings
) -> AnalysisTable:
    """Table of the strata: size, means and the associations of the features specified in advance."""
    return AnalysisTable(
        name="strata",
        title="The same features in every stratum",
        rows=[_row(measured, stratum, sweeps, settings) for stratum in strata],
        shown=STRATA,
        notes=(
            f"A stratum with fewer than {settings.too_few} replies is listed and not analysed; a feature of fewer "
            f"than {settings.least_n} replies is not ranked.",
        ),
    )


def family_of_model(name: str) -> str:
    """Family of a model: the first word of the last part of its name, such as `gpt` for `openai/gpt-4o-mini`.

    >>> family_of_model("http://127.0.0.1:8000/v1#meta-llama/Llama-3.1-8B-Instruct")
    'llama'
    """
    word = _WORD.search(re.split(r"[/#]", name.partition("?")[0])[-1])
    return word.group().lower() if word else name


def size_of_model(name: str) -> float | None:
    """Number of parameters in units of 10^9, from the model's name; None where it has none.

    >>> size_of_model("Llama-3.1-8B-Instruct"), size_of_model("gpt-4o-mini")
    (8.0, None)
    """
    found = _SIZE.search(name.replace("-", " ").replace("_", " "))
    return float(found[1]) if found else None


def _row(
    measured: ReplyFeatures, stratum: Stratum, sweeps: Sequence[Sweep], settings: AnalysisSettings
) -> dict[str, Value]:
    replies, rows = measured.replies, stratum.rows
    domains = sorted({str(domain) for domain in replies.domain[rows]} - {""})
    row: dict[str, Value] = {
        **stratum.named,
        "family": family_of_model(stratum.model),
        "size_b": size_of_model(stratum.model),
        "domain": ", ".join(domains),
        "replies": len(rows),
        "with_logprobs": int(replies.has_logprobs[rows].sum()),
        "quality_mean": _mean(replies.quality[rows]),
        "accuracy": _mean(replies.correct[rows]),
    }
    by_kind = {each.kind: each for each in sweeps if each.stratum is stratum}
    for number, name in enumerate(FIXED):
        row |= _of(by_kind.get("spearman"), name, QUALITY, f"rho_{number}")
    row |= _of(by_kind.get("auroc"), "logprob.first-3.range", FLAG, "auroc")
    row["exchangeable"] = min((float(each.movable.min()) for each in by_kind.values()), default=None)
    return row | {"remark": "; ".join(_caveats(row, measured.mu[rows], settings))}


def _caveats(row: Mapping[str, Value], mu: Floats, settings: AnalysisSettings) -> Iterator[str]:
    """Caveats of a stratum: too few replies, or missing log-probabilities or p-values."""
    replies, with_logprobs, exchangeable = (row[name] for name in ("replies", "with_logprobs", "exchangeable"))
    assert isinstance(replies, int)
    assert isinstance(with_logprobs, int)
    if replies < settings.too_few:
        yield "too few replies"
        return
    if not with_logprobs:
        yield "no log-probabilities"
        return
    if with_logprobs < settings.least_n:
        yield "too few to rank features"
    if not np.isfinite(mu).any():
        yield "an unknown token in every reply: no whole-reply features"
    if isinstance(exchangeable, float) and exchangeable < MOSTLY:
        yield (
            f"p-values exchange {exchangeable:.0%} of the replies"
            if exchangeable
            else "no p-values: no two groups are exchangeable"
        )


def _of(sweep: Sweep | None, feature: str, target: str, key: str) -> dict[str, Value]:
    if sweep is None or target not in sweep.targets:
        return {**with_interval(key, None), f"{key}_n": 0}
    f, t = [each.name for each in sweep.features].index(feature), sweep.targets.index(target)
    value, *ends = (float(part[f, t]) for part in (sweep.value, sweep.low, sweep.high))
    return {**with_interval(key, value, ends), f"{key}_n": int(sweep.n[f, t])}


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


MEAN = Feature("logprob", "token 0", "full", "mean")
"""Feature whose differences a terminal shows."""

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
    Column("ratio", "ratio", short="ratio"),
)


def role_comparison_tables(
    measured: ReplyFeatures, strata: Sequence[Stratum], sweeps: Sequence[Sweep], settings: AnalysisSettings
) -> list[AnalysisTable]:
    """Tables of pairwise comparisons of the roles of each data set, model, sampling and rubric."""
    differences: list[dict[str, Value]] = []
    ratios: list[dict[str, Value]] = []
    for words, members in settings_of(strata):
        for first, second in combinations(members, 2):
            for kind in ("spearman", "auroc"):
                of_kind = {id(each.stratum): each for each in sweeps if each.kind == kind}
                a, b = of_kind.get(id(first)), of_kind.get(id(second))
                if a is None or b is None:
                    continue
                targets = [name for name in a.targets if name in b.targets]
                named: dict[str, Value] = {"setting": f"{words}: {first.role} - {second.role}", "kind": kind}
                differences += [named | row for row in _differences(measured, a, b, targets, settings)]
                ratios += [named | row for row in _ratios(a, b, targets, settings)]
    return [
        AnalysisTable(
            "role_differences",
            "The same feature in both roles",
            differences,
            DIFFERENCES,
            terse=[row for row in differences if row["feature"] == MEAN.words],
            notes=(
                "Features specified in advance. Strength: |rho|, or for yes/no targets the AUROC's distance "
                "from one half; cases are resampled for both roles at once.",
                "Somers' D uses replies with different scores only, so roles with other score distributions can be "
                "compared.",
            ),
        ),
        AnalysisTable(
            "role_ratios",
            "Best values: ratios of the roles",
            ratios,
            RATIOS,
            notes=(
                "Strength: |rho|, or the AUROC's distance from one half; log-probability features from token 0, as in "
                "the papers (.335 over .177, their mean of the best rho; AUROC .804 over .634, which is .304 over "
                ".134). A ratio of best values is no test and has no interval, because each is selected as the largest "
                "of its sweep: chance enlarges both, the weaker one more.",
            ),
        ),
    ]


def _resamples(a: Sweep, b: Sweep, targets: Sequence[str], features: Sequence[int]) -> RoleResamples:
    none = 0.5 if a.kind == "auroc" else 0.0
    columns = [[each.targets.index(name) for name in targets] for each in (a, b)]
    first, second = (
        each.resampled[:, features][:, :, chosen] - none for each, chosen in zip((a, b), columns, strict=True)
    )
    one, other = (each.value[np.ix_(features, chosen)] - none for each, chosen in zip((a, b), columns, strict=True))
    return RoleResamples(first, second, one, other, min(a.clusters, b.clusters))


def _differences(
    measured: ReplyFeatures, a: Sweep, b: Sweep, targets: Sequence[str], settings: AnalysisSettings
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
                **with_interval(
                    "difference",
                    float(found.value[row, t]),
                    [float(end[row, t] * known[row, t]) for end in (found.low, found.high)],
                ),
                "somers_first": somers[0],
                "somers_second": somers[1],
            }


def _somers(measured: ReplyFeatures, sweep: Sweep, f: int, target: str) -> float:
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
        best = [_mean_of_best(each, features, columns) for each, columns in zip((a, b), places, strict=True)]
        yield {
            "over": words,
            "first": best[0],
            "second": best[1],
            "ratio": ratio_of_maxima(_resamples(a, b, chosen, features)),
        }


def _mean_of_best(sweep: Sweep, features: Sequence[int], targets: Sequence[int]) -> float:
    """Mean over the targets of the largest strength of a feature."""
    return float(np.nan_to_num(sweep.strength[np.ix_(features, targets)]).max(axis=0).mean())


def strength_charts(sweeps: Sequence[Sweep]) -> Iterator[Chart]:
    """Charts of Spearman's rho of Q with each log-probability feature from token 0, by window, for sweeps with Q."""
    with_quality = [each for each in sweeps if each.kind == "spearman" and QUALITY in each.targets]
    for place, sweep in enumerate(with_quality):
        t = sweep.targets.index(QUALITY)
        rho = {
            (feature.statistic, feature.window): finite_or_none(float(sweep.value[f, t]))
            for f, feature in enumerate(sweep.features)
            if feature.signal == "logprob" and feature.origin == "token 0"
        }
        yield Chart(
            f"strengths-{place + 1}",
            f"Association of judged reasoning with each feature of the tokens, {sweep.stratum.words}",
            [
                Series(statistic, list(WINDOWS), [rho.get((statistic, window)) for window in WINDOWS])
                for statistic in STATISTICS
            ],
            x_label="tokens of the reply",
            y_label="Spearman's rho with Q",
            guides=[Guide("", y=0.0)],
            note="Far from 0: the feature separates good reasoning from weak. With so many features some are far "
            "from 0 by chance; the table of top features has intervals and p-values.",
        )
