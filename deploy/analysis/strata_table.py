"""The same fixed features in every stratum, by model family and size; strata that are too small are named as such."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from moot.deploy.analysis.replies import FLAG, QUALITY, Measured, Stratum
from moot.deploy.analysis.settings import AnalysisSettings
from moot.deploy.analysis.sweep import Sweep
from moot.deploy.analysis.table import Column, Table, Value, with_ends
from moot.metrics.distribution import Floats

FIXED = ("logprob.full.mean", "logprob.first-3.range", "logprob.first-10.mean")
"""Features that are compared across strata, named before anything was seen."""

MOSTLY = 0.8
"""Where groups with a smaller share of the replies can be exchanged, the p-values are said to rest on so many."""

SHOWN = (
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
    measured: Measured, strata: Sequence[Stratum], sweeps: Sequence[Sweep], settings: AnalysisSettings
) -> Table:
    """One row for each stratum."""
    return Table(
        name="strata",
        title="The same features in every stratum",
        rows=[_row(measured, stratum, sweeps, settings) for stratum in strata],
        shown=SHOWN,
        notes=(
            f"A stratum with fewer than {settings.too_few} replies is named and not analysed; a feature that fewer "
            f"than {settings.least_n} replies have is not ranked.",
        ),
    )


def family_of_model(name: str) -> str:
    """The family that a model's name begins with: `openai/gpt-4o-mini` is `gpt`, a path's last part counts.

    >>> family_of_model("http://127.0.0.1:8000/v1#meta-llama/Llama-3.1-8B-Instruct")
    'llama'
    """
    word = _WORD.search(re.split(r"[/#]", name.partition("?")[0])[-1])
    return word.group().lower() if word else name


def size_of_model(name: str) -> float | None:
    """Parameters in units of 10^9, where the name says them.

    >>> size_of_model("Llama-3.1-8B-Instruct"), size_of_model("gpt-4o-mini")
    (8.0, None)
    """
    found = _SIZE.search(name.replace("-", " ").replace("_", " "))
    return float(found[1]) if found else None


def _row(measured: Measured, stratum: Stratum, sweeps: Sequence[Sweep], settings: AnalysisSettings) -> dict[str, Value]:
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
    return row | {"remark": "; ".join(_remarks(row, measured.mu[rows], settings))}


def _remarks(row: Mapping[str, Value], mu: Floats, settings: AnalysisSettings) -> Iterator[str]:
    """What a stratum is too small for, or lacks."""
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
        yield "an unknown token in every reply: nothing about whole replies"
    if isinstance(exchangeable, float) and exchangeable < MOSTLY:
        yield (
            f"p-values exchange {exchangeable:.0%} of the replies"
            if exchangeable
            else "no p-values: no two groups alike"
        )


def _of(sweep: Sweep | None, feature: str, target: str, key: str) -> dict[str, Value]:
    if sweep is None or target not in sweep.targets:
        return {**with_ends(key, None), f"{key}_n": 0}
    f, t = [each.name for each in sweep.features].index(feature), sweep.targets.index(target)
    value, *ends = (float(part[f, t]) for part in (sweep.value, sweep.low, sweep.high))
    return {**with_ends(key, value, ends), f"{key}_n": int(sweep.n[f, t])}


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
