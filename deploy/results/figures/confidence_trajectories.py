"""Confidence trajectories: mean token probability by position with its phases, and bands from 0 to 100 %."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moot.deploy.results.figures.judged_replies import Replies, ReplyFeatures, Stratum, settings_of
from moot.deploy.results.figures.token_confidence import AnalysisSettings, AnalysisTable, Column, Value, conditions_in
from moot.deploy.results.report.blocks import Chart, Guide, Series
from moot.deploy.results.text import finite_or_none, number
from moot.metrics.distribution import Floats
from moot.metrics.signal_divergences import confidence_ends
from moot.metrics.trajectory import (
    LATE_START,
    OPENING_END,
    PLATEAU,
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


_PHASES = {
    OPENING_END: "opening ends",
    PLATEAU[0]: "plateau begins",
    PLATEAU[1]: "plateau ends",
    LATE_START: "late phase begins",
}


def band_charts(found: Sequence[ConfidenceTrajectory]) -> Iterator[Chart]:
    """Charts of log-probability from 0 to 100 % of a reply by stratum, on one scale: mean, 25-75 and 10-90 % bands."""
    lows = [float(np.nanmin(each.bands.low_10)) for each in found if np.isfinite(each.bands.low_10).any()]
    scale = (min(lows), 0.0) if lows else None
    for place, each in enumerate(found):
        percents, bands = list(range(len(each.bands.n))), each.bands
        yield Chart(
            f"bands-{place + 1}",
            f"Confidence along the replies, {each.stratum.words} (n = {each.n:,})",
            [
                _band("10 to 90 %", percents, bands.low_10, bands.high_90, place),
                _band("25 to 75 %", percents, bands.low_25, bands.high_75, place),
                Series("mean", percents, _list(bands.mean), mark="line", style=place),
            ],
            x_label="% of the reply",
            y_label="log-probability, nat",
            x_range=(0.0, 100.0),
            y_range=scale,
            note="0: each token was certain. The dark band contains the central 50 % of the replies, the light one the "
            "central 80 %. Where a line falls, the model becomes less confident.",
        )


def _band(name: str, percents: Sequence[int], low: Floats, high: Floats, style: int) -> Series:
    return Series(name, percents, low=_list(low), high=_list(high), mark="band", style=style)


def position_charts(found: Sequence[ConfidenceTrajectory]) -> Iterator[Chart]:
    """Charts of mean token probability by position, a line for each role, with the ends of the phases."""
    curves = {each.stratum.words: each for each in found if len(each.by_position.mean)}
    several = settings_of([each.stratum for each in curves.values()])
    for place, (words, strata) in enumerate(several):
        of_setting = [curves[stratum.words] for stratum in strata]
        longest = max(len(each.by_position.mean) for each in of_setting)
        yield Chart(
            f"positions-{place + 1}",
            f"Mean token probability by position, {words}",
            [
                Series(
                    f"{each.stratum.role} (n = {each.n:,})",
                    list(range(len(each.by_position.mean))),
                    _list(each.by_position.mean),
                    mark="line",
                )
                for each in of_setting
            ],
            x_label="token",
            y_label="mean probability",
            guides=[Guide(name, x=float(at)) for at, name in _PHASES.items() if at < longest],
            note="The first tokens are often fixed text, and so certain. A curve ends where too few replies are that "
            "long.",
        )


def score_charts(replies: Replies, strata: Sequence[Stratum]) -> Iterator[Chart]:
    """Charts of the judges' scores by stratum and dimension; a reply's mean is rounded to a whole score."""
    for place, stratum in enumerate(strata):
        known = {name: values[stratum.rows] for name, values in replies.scores.items()}
        known = {name: np.rint(values[np.isfinite(values)]) for name, values in known.items()}
        known = {name: values for name, values in known.items() if len(values)}
        if not known:
            continue
        ends = [int(end) for values in known.values() for end in (values.min(), values.max())]
        levels = range(min(ends), max(ends) + 1)
        yield Chart(
            f"scores-{place + 1}",
            f"The judges' scores, {stratum.words}",
            [
                Series(
                    f"{name.replace('_', ' ')} (n = {len(values):,})",
                    [str(level) for level in levels],
                    [float((values == level).mean()) for level in levels],
                    mark="bars",
                )
                for name, values in known.items()
            ],
            x_label="score",
            y_label="share of the replies",
            note="A reply's score is its mean over the marks, rounded. Where nearly all replies have one score, "
            "no association with it can be found.",
        )


def divergence_charts(rows: Sequence[Mapping[str, Value]]) -> Iterator[Chart]:
    """Charts of the prevalence of each divergence by stratum, with intervals, beside that of independent signals."""
    strata = list(dict.fromkeys(str(row["stratum"]) for row in rows))
    for place, stratum in enumerate(strata):
        of_stratum = [row for row in rows if row["stratum"] == stratum]
        names = [str(row["divergence"]) for row in of_stratum]
        found, low, high, independent = (
            [finite_or_none(row[key]) for row in of_stratum]
            for key in ("prevalence", "prevalence_low", "prevalence_high", "independent")
        )
        yield Chart(
            f"divergences-{place + 1}",
            f"How often confidence, judged reasoning and answers disagree, {stratum}",
            [
                Series("found", names, found, low=low, high=high),
                Series("if they were independent", names, independent, style=3),
            ],
            y_label="share of the replies",
            note="A disagreement well above the share of independent signals is systematic. Bars are 95 % intervals.",
        )


def signal_charts(measured: ReplyFeatures, strata: Sequence[Stratum], settings: AnalysisSettings) -> Iterator[Chart]:
    """Charts of mean log-probability against judged quality by stratum; replies with a divergence are highlighted."""
    mu, quality = measured.mu, measured.replies.quality
    for place, stratum in enumerate(strata):
        rows = stratum.rows[np.isfinite(mu[stratum.rows]) & np.isfinite(quality[stratum.rows])]
        if len(rows) < settings.too_few:
            continue
        chosen = {
            each.name: stratum.rows[each.known & each.first & each.second]
            for each in conditions_in(measured, stratum.rows, settings)
        }
        chosen = {name: np.intersect1d(of, rows, assume_unique=True) for name, of in chosen.items()}
        others = np.setdiff1d(rows, np.concatenate([*chosen.values(), np.empty(0, np.int64)]))
        ends = confidence_ends(mu[stratum.rows], settings.quantile)
        yield Chart(
            f"signals-{place + 1}",
            f"Confidence against judged reasoning, {stratum.words}",
            [
                _replies(measured, "other replies", others, style=4),
                *(_replies(measured, name, of, style=n) for n, (name, of) in enumerate(chosen.items()) if len(of)),
            ],
            x_label="mean log-probability, nat",
            y_label="Q, judged reasoning",
            guides=[
                *(Guide(words, x=float(end)) for words, end in zip(("unsure", "confident"), ends, strict=True)),
                Guide("weak", y=settings.low_quality),
                Guide("well reasoned", y=settings.high_quality),
            ],
            note="Each point is a reply; a click opens its case where the page has it. Right of the line "
            f"for confident are the {number(100 * settings.quantile)} % most confident replies.",
        )


def _replies(measured: ReplyFeatures, name: str, rows: np.ndarray, style: int) -> Series:
    cases = [str(case) for case in measured.replies.case[rows]]
    heights = _list(measured.replies.quality[rows])
    return Series(f"{name} ({len(rows):,})", _list(measured.mu[rows]), heights, cases=cases, style=style)


def _list(values: Floats) -> list[float]:
    found: list[float] = values.tolist()
    return found
