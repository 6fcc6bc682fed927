"""Replies with a known association of token confidence and judged quality, clustered by essay.

Every reply has a latent confidence and a latent quality, each with a component that the essay's replies share. Tokens
are noise, scaled so that a reply's mean (or standard deviation of the) log-probability is exactly an increasing
function of its confidence: rank statistics then depend only on the latents, and a very large sample gives their
population values.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from scipy.stats import rankdata

from moot.deploy.results.figures.token_confidence import AnalysisSettings
from moot.deploy.studies.analysis.analyze import Analysis, analyze, show_analysis

Floats = npt.NDArray[np.float64]

CASES = 6
"""Number of cases of one essay."""

SHARED = 0.4
"""Default share of each latent's variance between essays."""

QUICK = AnalysisSettings(resamples=50, permutations=100)
"""Settings for tests that do not depend on the exact value of an interval or a p-value."""


@dataclass(frozen=True)
class Latents:
    """Latent variables of one role's replies: arrays `(n,)`, `scores` `(3, n)`."""

    essay: npt.NDArray[np.int64]
    confidence: Floats
    scores: Floats
    flag: npt.NDArray[np.bool_]
    correct: npt.NDArray[np.bool_]

    @property
    def quality(self) -> Floats:
        """Q, as the analysis computes it from scores and flag."""
        return np.where(self.flag, 0.0, self.scores.sum(axis=0))


def latents(random: np.random.Generator, essays: int, link: float, shared: float = SHARED) -> Latents:
    """Latents in which the association of quality and confidence is `link`, in [-1, 1]; 0 for none."""
    essay = np.repeat(np.arange(essays), CASES)

    def noise() -> Floats:
        between, within = random.normal(size=essays)[essay], random.normal(size=len(essay))
        return np.asarray(np.sqrt(shared) * between + np.sqrt(1.0 - shared) * within)

    confidence = noise()
    quality = link * confidence + np.sqrt(1.0 - link * link) * noise()

    def judged() -> Floats:
        return np.asarray(quality + 0.6 * random.normal(size=len(essay)))

    scores = np.array([1.0 + (mark > high) + (mark > low) for high, low, mark in _marks(judged)])
    return Latents(essay, confidence, scores, judged() < -1.2, judged() > 0.1)


def _marks(judged: Any) -> list[tuple[float, float, Floats]]:
    return [(high, high - 0.9, judged()) for high in (0.3, 0.0, -0.6)]


@dataclass(frozen=True)
class Population:
    """Population values of a kind of replies.

    Attributes:
        rho: Spearman's rho of Q and confidence.
        auroc: AUROC of confidence, for the flag and for a correct answer.
        prevalence: of each divergence.
    """

    rho: float
    auroc: Mapping[str, float]
    prevalence: Mapping[str, float]


def population(link: float, essays: int = 100_000) -> Population:
    """Population values from a very large sample, with an error of at most about 0.001."""
    drawn = latents(np.random.default_rng(0), essays, link)
    low, high = np.quantile(drawn.confidence, [0.25, 0.75])
    weak = (drawn.quality <= 5.0) | drawn.flag
    return Population(
        rho=float(np.corrcoef(rankdata(drawn.quality), rankdata(drawn.confidence))[0, 1]),
        auroc={
            "critical flag": _auroc(drawn.confidence, drawn.flag),
            "correct": _auroc(drawn.confidence, drawn.correct),
        },
        prevalence={
            "confident but weak": float(((drawn.confidence >= high) & weak).mean()),
            "good reasoning, wrong answer": float(((drawn.quality >= 8.0) & ~drawn.correct).mean()),
            "unsure but right": float(((drawn.confidence <= low) & drawn.correct).mean()),
        },
    )


def _auroc(values: Floats, yes: npt.NDArray[np.bool_]) -> float:
    ranks, count = rankdata(values), int(yes.sum())
    return float((ranks[yes].sum() - count * (count + 1) / 2) / (count * (len(yes) - count)))


def planted(
    essays: int,
    seed: int,
    links: Mapping[str, float],
    *,
    carrier: Literal["mean", "std"] = "mean",
    shared: float = SHARED,
    tokens: int = 24,
) -> pa.Table:
    """A user's table: for each role replies with its association, on the same essays.

    Args:
        essays: number of essays, each with `CASES` cases.
        seed: random seed.
        links: association by role.
        carrier: the statistic of the log-probabilities that encodes confidence.
        shared: share of each latent's variance between essays.
        tokens: mean number of tokens of a reply; lengths vary by a quarter, independently of the latents.
    """
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for role, link in links.items():
        drawn = latents(random, essays, link, shared)
        for number, essay in enumerate(drawn.essay.tolist()):
            noise = random.uniform(-1.0, 1.0, random.integers(3 * tokens // 4, 5 * tokens // 4 + 1))
            noise = (noise - noise.mean()) / noise.std()
            z = float(drawn.confidence[number])
            mean, std = (-3.0 + 0.15 * z, 0.8) if carrier == "mean" else (-3.0, 0.6 * np.exp(-0.1 * z))
            rows.append(
                {
                    "logprob": (mean + std * noise).tolist(),
                    "case": f"e{essay}-{number % CASES}",
                    "group": f"e{essay}",
                    "role": role,
                    "dataset": "planted",
                    "domain": "rubric scoring",
                    **{f"score_{name}": drawn.scores[place, number] for place, name in enumerate("abc")},
                    "flag": bool(drawn.flag[number]),
                    "correct": bool(drawn.correct[number]),
                }
            )
    return pa.Table.from_pylist(rows)


def analysed(table: pa.Table, folder: Path, settings: AnalysisSettings = QUICK, **options: Any) -> Analysis:
    """Analysis of a table, written to a file first."""
    path = folder / "replies.parquet"
    pq.write_table(table, path)
    return analyze(table=path, settings=settings, **options)


def rows_of(found: Analysis, table: str, **wanted: Any) -> list[dict[str, Any]]:
    """Rows of a table with these values, as in a file."""
    rows = [row for row in found.tables[table].rows if all(row[name] == value for name, value in wanted.items())]
    return [{name: None if value != value else value for name, value in row.items()} for row in rows]


def row_of(found: Analysis, table: str, **wanted: Any) -> dict[str, Any]:
    """The only such row."""
    rows = rows_of(found, table, **wanted)
    assert len(rows) == 1, (table, wanted, len(rows))
    return rows[0]


def changed(table: pa.Table, **columns: Any) -> pa.Table:
    """The table with columns replaced or added: by a list, an Arrow array, or one value for all rows."""
    for name, given in columns.items():
        values = given if isinstance(given, list | pa.Array | pa.ChunkedArray) else [given] * table.num_rows
        column = pa.array(values) if isinstance(values, list) else values
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, column)
        else:
            table = table.append_column(name, column)
    return table


def shown(found: Analysis, form: str = "text", width: int = 80) -> str:
    """Output on a terminal with a number of columns."""
    sink, page = io.StringIO(), Path("analysis/index.html")
    show_analysis(found, page, form, console=Console(file=sink, width=width, force_terminal=True, color_system=None))
    return sink.getvalue()
