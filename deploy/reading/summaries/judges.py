"""How steadily the judges of a run judged: their stability over evidence variants, and how often a winner flips."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from moot.actors.record.schema import CaseKey
from moot.actors.record.tables import read_table
from moot.deploy.reading.record import Noted, VerdictRow
from moot.metrics.evidence_weighting import judge_stability

_JUDGE_PASS = re.compile(r"(.+)/judge/\d+/variant/(\d+)/pass/\d+")


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of the known values; None when none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def judge_figures(folder: str | Path, finished: Sequence[VerdictRow], events: Sequence[Noted]) -> dict[str, Any]:
    """Stability and flip rate, each in [0, 1] or None when unknown: of the verdicts' own judging, and of audits'.

    Raises:
        RecordError: the record cannot be read.
    """
    keys = {verdict.key for verdict in finished}
    judgings = [event for event in events if event.kind == "judging" and event.key in keys]
    sources = verdict_sources(events)
    paths = {"skip": ("judge/consensus",), "debate": ("judge",)}
    own = [
        event.data
        for event in judgings
        if event.path != "audit/judge" and event.path in paths.get(sources.get(event.key, ""), (event.path,))
    ]
    audit = [event.data for event in judgings if event.path == "audit/judge"]
    return {
        "judge_stability": mean_of(_stabilities(own)) if judgings else _stability_of_judgments(folder, keys),
        "flip_rate": mean_of(_figure(data.get("flip_rate")) for data in own),
        "judge_stability_audit": mean_of(_stabilities(audit)),
        "flip_rate_audit": mean_of(_figure(data.get("flip_rate")) for data in audit),
    }


def _stabilities(judgings: Iterable[Mapping[str, Any]]) -> list[float | None]:
    candidates = (data.get("candidates") for data in judgings)
    each = (one for several in candidates if isinstance(several, list) for one in several if isinstance(one, dict))
    return [_figure(candidate.get("stability")) for candidate in each]


def _figure(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _stability_of_judgments(folder: str | Path, keys: set[CaseKey]) -> float | None:
    """For protocols that note no `judging` events: from the table of judgments, by the floor's own paths."""
    scores: dict[tuple[str, int, str], dict[int, list[float]]] = {}
    for row in read_table(folder, "judgments", ["score"]).to_pylist():
        place = _JUDGE_PASS.fullmatch(row["path"])
        if place is not None and row["score"] is not None and (row["case_id"], row["attempt"]) in keys:
            variants = scores.setdefault((row["case_id"], row["attempt"], place[1]), {})
            variants.setdefault(int(place[2]), []).append(row["score"])
    return mean_of(
        judge_stability([fmean(variant) for variant in variants.values()])
        for variants in scores.values()
        if len(variants) > 1
    )


def verdict_sources(events: Iterable[Noted]) -> dict[CaseKey, str]:
    """By debate that ran both branches, the one that its verdict was taken from: `skip` or `debate`."""
    both = (event for event in events if event.kind in ("audit", "branches"))
    return {event.key: str(event.data.get("verdict_from")) for event in both}
