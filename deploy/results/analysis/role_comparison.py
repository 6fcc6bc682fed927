"""Comparison of strata and roles: features specified in advance, and the ratio of the roles' best associations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from moot.deploy.results.analysis.replies import FLAG, QUALITY, ReplyFeatures, Stratum, settings_of
from moot.deploy.results.analysis.settings import AnalysisSettings
from moot.deploy.results.analysis.sweep import Sweep
from moot.deploy.results.analysis.table import AnalysisTable, Column, Value, with_interval
from moot.metrics.confidence_features import Feature
from moot.metrics.distribution import Floats
from moot.metrics.rank_correlation import somers_d
from moot.metrics.role_asymmetry import RoleResamples, association_difference, ratio_of_maxima

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
