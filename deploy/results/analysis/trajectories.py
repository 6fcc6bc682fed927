"""Confidence trajectories: mean token probability by position with its phases, and bands from 0 to 100 %."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moot.deploy.results.analysis.replies import Replies, Stratum
from moot.deploy.results.analysis.table import AnalysisTable, Column, Value
from moot.metrics.trajectory import (
    MeanProbability,
    Phase,
    TrajectoryBands,
    bands,
    mean_probability,
    percent_grid,
    phases,
)

PHASES = (
    Column("stratum", "stratum"),
    Column("phase", "phase", short="phase"),
    Column("start", "from token", digits=None, short="from"),
    Column("stop", "to before", digits=None, short="to"),
    Column("mean", "mean probability", short="probability"),
    Column("n", "replies, at least", digits=None, short="replies"),
)


@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceTrajectory:
    """Confidence trajectory of a stratum, from the first token to the last.

    Attributes:
        stratum: the stratum.
        n: replies with log-probabilities.
        by_position: mean token probability at each position.
        phases: the four phases of `by_position`.
        bands: log-probability at 0 to 100 % of a reply.
    """

    stratum: Stratum
    n: int
    by_position: MeanProbability
    phases: tuple[Phase, ...]
    bands: TrajectoryBands


def trajectories(replies: Replies, strata: Sequence[Stratum]) -> list[ConfidenceTrajectory]:
    """Confidence trajectories of the strata with log-probabilities."""
    found = []
    for stratum in strata:
        part = replies.logprobs.take(stratum.rows)
        n = int((part.lengths > 0).sum())
        if n:
            mean = mean_probability(part)
            found.append(ConfidenceTrajectory(stratum, n, mean, phases(mean), bands(percent_grid(part))))
    return found


def trajectory_tables(found: Sequence[ConfidenceTrajectory]) -> list[AnalysisTable]:
    """Tables of the phases and, in files only, of the curves by position and by percent."""
    by_phase: list[dict[str, Value]] = [
        {
            **each.stratum.named,
            "phase": phase.name,
            "start": phase.start if phase.n else None,
            "stop": phase.stop if phase.n else None,
            "mean": phase.mean if phase.n else None,
            "n": phase.n,
        }
        for each in found
        for phase in each.phases
    ]
    by_position: list[dict[str, Value]] = [
        {**each.stratum.named, "position": t, "mean": float(mean), "n": int(n)}
        for each in found
        for t, (mean, n) in enumerate(zip(each.by_position.mean, each.by_position.n, strict=True))
    ]
    by_percent: list[dict[str, Value]] = [
        {
            **each.stratum.named,
            "percent": point,
            **{name: float(getattr(each.bands, name)[point]) for name in BAND_NAMES},
            "n": int(each.bands.n[point]),
        }
        for each in found
        for point in range(len(each.bands.n))
    ]
    return [
        AnalysisTable(
            "phases",
            "Mean token probability in four phases",
            by_phase,
            PHASES,
            notes=(
                "The curve ends where fewer than 30 replies, or a quarter of them, are that long: beyond, the long "
                "replies would determine it. A phase that it does not reach is empty.",
            ),
        ),
        AnalysisTable(
            "trajectory_positions",
            "Mean token probability by position",
            by_position,
            _curve("position"),
            in_files_only=True,
        ),
        AnalysisTable(
            "trajectory_percent",
            "Log-probability from 0 to 100 % of a reply",
            by_percent,
            _curve("percent"),
            in_files_only=True,
        ),
    ]


BAND_NAMES = ("mean", "low_10", "low_25", "high_75", "high_90")


def _curve(place: str) -> tuple[Column, ...]:
    return (
        Column("stratum", "stratum"),
        Column(place, place, digits=None),
        Column("mean", "mean", short="probability"),
        Column("n", "n", digits=None),
    )


OPENINGS = (
    Column("stratum", "stratum"),
    Column("replies", "replies with tokens", digits=None, short="replies"),
    Column("openings", "distinct openings", digits=None, short="openings"),
    Column("most_frequent", "most frequent"),
    Column("share", "its share", short="commonest"),
    Column("tokens", "tokens before content, mean", digits=1),
)

ENTROPIES = (
    Column("stratum", "stratum"),
    Column("n", "replies with alternatives", digits=None, short="replies"),
    Column("lower", "at least", short="at least"),
    Column("renormalised", "over the listed", short="over listed"),
    Column("upper", "at most", short="at most"),
)


def openings_table(replies: Replies, strata: Sequence[Stratum]) -> AnalysisTable:
    """Table of the distinct openings of each stratum; equal first tokens have little information."""
    rows: list[dict[str, Value]] = []
    for stratum in strata:
        with_logprobs = stratum.rows[replies.has_logprobs[stratum.rows]]
        if not len(with_logprobs):
            continue
        counts = Counter(str(opening) for opening in replies.opening[with_logprobs])
        first, most = counts.most_common(1)[0]
        rows.append(
            {
                **stratum.named,
                "replies": len(with_logprobs),
                "openings": len(counts),
                "most_frequent": repr(first) if first else "(none)",
                "share": most / len(with_logprobs),
                "tokens": float(replies.content_start[with_logprobs].mean()),
            }
        )
    note = (
        "An opening is the section label or other fixed text that a reply begins with; `from content` features begin "
        "after it, and the column within_openings of the file `associations` compares replies of one opening only."
    )
    return AnalysisTable("openings", "How the replies begin", rows, OPENINGS, notes=(note,))


def entropies_table(replies: Replies, strata: Sequence[Stratum]) -> AnalysisTable:
    """Table of the mean token entropy of each stratum, in nats, with the bounds from the listed alternatives.

    A mean is over the tokens of all replies together, so that long replies weigh more.
    """
    rows: list[dict[str, Value]] = []
    for stratum in strata if replies.entropies else ():
        parts = {name: values.take(stratum.rows).values for name, values in replies.entropies.items()}
        known = int((replies.entropies["lower"].take(stratum.rows).lengths > 0).sum())
        row: dict[str, Value] = {**stratum.named, "n": known}
        for name in ("lower", "renormalised", "upper"):
            values = parts.get(name, np.empty(0))
            values = values[np.isfinite(values)]
            row[name] = float(values.mean()) if len(values) else None
        rows.append(row)
    note = (
        "Nats, over the tokens of all replies together. Servers list only a few alternatives for each token, so the "
        "entropy is known between two bounds. The upper one needs the size of the vocabulary (--vocabulary). Features "
        "use the middle column."
    )
    return AnalysisTable("entropies", "Token entropy and its bounds", rows, ENTROPIES, notes=(note,))
