"""Judge stability over evidence variants, flip rate of winners, and contradictory judgments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from moot.actors.record.schema import CaseKey
from moot.actors.record.tables import read_table
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_record import RunRecord
from moot.deploy.results.summaries.case_costs import JUDGE_PASS
from moot.deploy.results.text import mean_of
from moot.metrics.evidence_weighting import judge_stability
from moot.protocols.selene.events import BranchesCompared, CandidatesJudged, SkipAudited
from moot.protocols.selene.scoring import contradicts_score


def judge_figures(record: RunRecord, finished: Sequence[VerdictRow]) -> dict[str, Any]:
    """Stability and flip rate of the verdicts' own judging and of audits, by field of `Summary`.

    Each is in [0, 1], None when unknown, a mean over cases, whose number is at the same name with `_cases`. Evidence
    that could not be perturbed does not count. `_split` covers the judgings of at least two answers: a single answer
    cannot flip. `judgments_at_odds` counts the own judgments whose support contradicts their score, among the
    `judgments_read`; None without any.

    Raises:
        RecordError: the record cannot be read.
    """
    keys = {verdict.key for verdict in finished}
    judgings = [(event.key, judged) for event, judged in record.typed_events(CandidatesJudged) if event.key in keys]
    sources = verdict_sources(record)
    paths = {"skip": ("judge/consensus",), "debate": ("judge",)}
    own = [
        judged
        for key, judged in judgings
        if judged.path != "audit/judge" and judged.path in paths.get(sources.get(key, ""), (judged.path,))
    ]
    audit = [judged for _, judged in judgings if judged.path == "audit/judge"]
    stabilities = _stabilities(own) if judgings else _stabilities_of_judgments(record.folder, keys)
    return {
        **_mean("judge_stability", stabilities),
        **_mean("flip_rate", _flip_rates(own)),
        **_mean("flip_rate_split", _flip_rates(filter(_is_split, own))),
        **_mean("judge_stability_audit", _stabilities(audit)),
        **_mean("flip_rate_audit", _flip_rates(audit)),
        **_mean("flip_rate_audit_split", _flip_rates(filter(_is_split, audit))),
        "audit_variants": sorted({judged.variants or "unknown" for judged in audit if not judged.unperturbed}),
        **_at_odds(own),
    }


def _mean(name: str, by_case: Iterable[float | None]) -> dict[str, Any]:
    """Mean over the cases with a known value, and their number."""
    known = [value for value in by_case if value is not None]
    return {name: mean_of(known), f"{name}_cases": len(known)}


def _flip_rates(judgings: Iterable[CandidatesJudged]) -> list[float | None]:
    return [judged.flip_rate for judged in judgings if not judged.unperturbed]


def _is_split(judged: CandidatesJudged) -> bool:
    return len({candidate.answer for candidate in judged.candidates}) > 1


def _stabilities(judgings: Iterable[CandidatesJudged]) -> list[float | None]:
    """Stability by case, the mean of its candidates'."""
    return [
        mean_of(candidate.stability for candidate in judged.candidates) for judged in judgings if not judged.unperturbed
    ]


def _at_odds(judgings: Iterable[CandidatesJudged]) -> dict[str, int | None]:
    """Counts of contradictory judgments, from support and score, which records of all versions have."""
    judgments = [one for judged in judgings for candidate in judged.candidates for one in candidate.judgments]
    read = [(one.support, one.score) for one in judgments if one.support and one.score is not None]
    return {
        "judgments_read": len(read) or None,
        "judgments_at_odds": sum(contradicts_score(support, score) for support, score in read) if read else None,
    }


def _stabilities_of_judgments(folder: str | Path, keys: set[CaseKey]) -> list[float | None]:
    """Stability by case from the table of judgments and their paths, for protocols without `judging` events."""
    scores: dict[CaseKey, dict[str, dict[int, list[float]]]] = {}
    for row in read_table(folder, "judgments", ["score"]).to_pylist():
        place, key = JUDGE_PASS.fullmatch(row["path"]), (row["case_id"], row["attempt"])
        if place is not None and row["score"] is not None and key in keys:
            variants = scores.setdefault(key, {}).setdefault(place[1], {})
            variants.setdefault(int(place[2]), []).append(row["score"])
    return [
        mean_of(
            judge_stability([fmean(variant) for variant in variants.values()])
            for variants in steps.values()
            if len(variants) > 1
        )
        for steps in scores.values()
    ]


def verdict_sources(record: RunRecord) -> dict[CaseKey, str]:
    """Branch of the verdict, `skip` or `debate`, of each debate that ran both branches."""
    both = (*record.typed_events(BranchesCompared), *record.typed_events(SkipAudited))
    return {event.key: branches.verdict_from for event, branches in both}
