"""Inter-rater agreement of a user's table of ratings, one row for each item and rater."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pc
from rich.console import Console

from moot.deploy.results.report.blocks import Block, Heading, Items, Note, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.report.render import show_report
from moot.deploy.results.stats import IntervalEstimate, with_ends
from moot.deploy.results.text import Interval, natural_sort_key
from moot.deploy.studies.analysis.imported import read_parquet, read_user_table
from moot.metrics.agreement import (
    Level,
    Weights,
    ac2_interval,
    alpha_interval,
    gwet_ac2,
    krippendorff_alpha,
    rater_interval,
    raw_agreement,
    raw_agreement_interval,
)
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import LEAST_CLUSTERS, Ends
from moot.metrics.weighted_kappa import cohen_kappa, quadratic_weighted_kappa
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.regular_files import open_regular

NEEDED, OPTIONAL = ("item", "rater", "score"), ("group",)
"""Columns of the table; items with the same `group` are dependent."""


class Statistic(FrozenModel):
    """Agreement coefficient with its 95 % interval; each None when unknown.

    Attributes:
        name: name of the coefficient, with its weights or level.
        raters: the two raters; None for all of them.
        n: items scored by at least two of these raters.
    """

    name: str
    raters: tuple[str, str] | None
    n: int
    value: float | None
    interval: Interval | None


class RatingAgreement(FrozenModel):
    """Inter-rater agreement of a table.

    Attributes:
        source: the file.
        items, groups: number of rated items and of their groups; an item without a group is a group of its own.
        raters: names of the raters.
        ratings: number of scores.
        categories: the scores that occur, in order; AC2 assumes that no others are possible.
        numeric: whether scores are numbers; other scores have nominal figures only.
        together: alpha, AC2 and raw agreement of all raters.
        pairs: Cohen's kappa of each pair of raters, and for numbers the quadratically weighted one.
    """

    source: str
    items: int
    groups: int
    raters: list[str]
    ratings: int
    categories: list[str]
    numeric: bool
    together: list[Statistic]
    pairs: list[Statistic]


def rating_agreement(path: str | Path) -> RatingAgreement:
    """Inter-rater agreement of a table, with intervals over items (or groups of items).

    Args:
        path: a CSV or Parquet file with the columns `item`, `rater`, `score` and, optionally, `group`. A score is a
            number or a text; empty or null is missing.

    Raises:
        ConfigError: the file cannot be read, a column is unknown, or missing, or lacks a required value, a rater scores
            an item twice, an item is in two groups, or there are fewer than two raters. The message is one line.
    """
    path = Path(path)
    rows = _rows(path)
    scores, numeric = _scores(row["score"] for row in rows)
    cells = _cells(path, rows, scores)
    items, raters = list(dict.fromkeys(i for i, _ in cells)), sorted({r for _, r in cells}, key=natural_sort_key)
    if len(raters) < 2:
        raise ConfigError(f"--ratings {path}: expected two raters or more, found {len(raters)}")
    groups = _groups(path, rows)
    names = np.array([f"group {groups[item]}" if item in groups else f"item {item}" for item in items])
    matrix = np.array([[cells.get((item, rater), math.nan) for item in items] for rater in raters])
    categories = sorted({value for value in cells.values() if not math.isnan(value)})
    measured = partial(_statistics, clusters=names)
    of_two = _pair(categories, numeric=numeric)
    return RatingAgreement(
        source=str(path),
        items=len(items),
        groups=len(set(names.tolist())),
        raters=raters,
        ratings=int(np.isfinite(matrix).sum()),
        categories=[f"{value:g}" for value in categories] if numeric else sorted(scores, key=lambda t: scores[t]),
        numeric=numeric,
        together=measured(_together(categories, numeric=numeric), matrix, None),
        pairs=[
            found
            for one, other in combinations(range(len(raters)), 2)
            for found in measured(of_two, matrix[[one, other]], (raters[one], raters[other]))
        ],
    )


Figure = tuple[Callable[[Floats], float], Callable[..., Ends]]
"""Coefficient of ratings of shape `(raters, items)`, and its interval."""


def _together(categories: Sequence[float], *, numeric: bool) -> dict[str, Figure]:
    """Coefficients of all raters: Krippendorff's alpha, AC2 where more than one score occurs, and raw agreement."""
    levels: tuple[Level, ...] = ("nominal", "ordinal", "interval") if numeric else ("nominal",)
    weights: tuple[Weights, ...] = ("identity", "ordinal", "quadratic") if numeric else ("identity",)
    found: dict[str, Figure] = {
        f"Krippendorff's alpha, {level}": (
            partial(krippendorff_alpha, level=level),
            partial(alpha_interval, level=level),
        )
        for level in levels
    }
    for each in weights if len(categories) > 1 else ():
        found[f"Gwet's AC2, {each} weights"] = (
            partial(gwet_ac2, categories=categories, weights=each),
            partial(ac2_interval, categories=categories, weights=each),
        )
    return {**found, "raw agreement": (raw_agreement, raw_agreement_interval)}


def _pair(categories: Sequence[float], *, numeric: bool) -> dict[str, Figure]:
    """Coefficients of two raters: Cohen's kappa, and for numbers the quadratically weighted one."""
    statistics: dict[str, Callable[[Floats], float]] = {"Cohen's kappa": lambda two: cohen_kappa(two[0], two[1])}
    if numeric and categories:
        low, high = categories[0], categories[-1]
        statistics["quadratic weighted kappa"] = lambda two: quadratic_weighted_kappa(two[0], two[1], low, high)
    return {name: (of, partial(rater_interval, of)) for name, of in statistics.items()}


def _statistics(
    figures: Mapping[str, Figure],
    ratings: Floats,
    raters: tuple[str, str] | None,
    clusters: npt.NDArray[Any],
) -> list[Statistic]:
    """Coefficients over the items scored by at least two raters."""
    known = np.isfinite(ratings).sum(axis=0) >= 2
    ratings, clusters = ratings[:, known], clusters[known]
    found = []
    for name, (of, interval) in figures.items():
        value = of(ratings) if known.any() else math.nan
        estimate = IntervalEstimate()
        if not math.isnan(value):
            estimate = with_ends(value, *interval(ratings, clusters=clusters))
        found.append(
            Statistic(name=name, raters=raters, n=int(known.sum()), value=estimate.value, interval=estimate.interval)
        )
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    as_csv = path.suffix.lower() == ".csv"
    read = partial(_read_csv if as_csv else read_parquet, path)
    table = read_user_table(f"--ratings {path}", "CSV (.csv) or else Parquet", read)
    for name in table.column_names:
        if name not in NEEDED + OPTIONAL:
            raise ConfigError(f"--ratings {path}: {unknown_name('column', name, NEEDED + OPTIONAL)}")
    for name in NEEDED:
        if name not in table.column_names:
            raise ConfigError(f"--ratings {path}: expected the columns {', '.join(NEEDED)}; found no `{name}`")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _read_csv(path: Path) -> pa.Table:
    with open_regular(path) as stream:
        return pc.read_csv(stream)


def _scores(given: Any) -> tuple[dict[Any, float], bool]:
    """Numeric codes of the scores (a text's code is its rank), and whether all scores are numbers."""
    known = {score for score in given if score not in (None, "") and score == score}
    if all(isinstance(score, int | float) for score in known) and all(math.isfinite(score) for score in known):
        return {score: float(score) for score in known}, True
    return {score: float(place) for place, score in enumerate(sorted(known, key=str))}, False


def _cells(path: Path, rows: Sequence[dict[str, Any]], scores: dict[Any, float]) -> dict[tuple[str, str], float]:
    cells: dict[tuple[str, str], float] = {}
    for number, row in enumerate(rows, 1):
        for name in ("item", "rater"):
            if row[name] in (None, ""):
                raise ConfigError(f"--ratings {path}: row {number} has no `{name}`")
        key = (str(row["item"]), str(row["rater"]))
        if key in cells:
            raise ConfigError(f"--ratings {path}: row {number}: rater {key[1]!r} scores item {key[0]!r} a second time")
        cells[key] = scores.get(row["score"], math.nan)
    return cells


def _groups(path: Path, rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Groups by item, of the items that have one."""
    groups: dict[str, str] = {}
    for row in rows:
        if (group := row.get("group")) in (None, ""):
            continue
        if groups.setdefault(str(row["item"]), str(group)) != str(group):
            raise ConfigError(f"--ratings {path}: item {str(row['item'])!r} is in two groups")
    return groups


def show_ratings(found: RatingAgreement, form: str = "text", console: Console | None = None) -> None:
    """Shows the figures on the console.

    Raises:
        ConfigError: the format is unknown.
    """
    show_report(found, lambda: _blocks(found), form, console)


def _blocks(found: RatingAgreement) -> list[Block]:
    together = [(each.name, *_figure(each)) for each in found.together]
    pairs = [(" - ".join(each.raters or ()), each.name, *_figure(each)) for each in found.pairs]
    return [
        Heading("Agreement of raters", 1),
        Note(f"{found.source}: {found.ratings:,} ratings of {found.items:,} items by {len(found.raters)} raters"),
        Table("all raters together", ("", "value", "95 % interval", "n"), together),
        Table("each two raters", ("raters", "", "value", "95 % interval", "n"), pairs),
        Items(_notes(found)),
    ]


def _figure(each: Statistic) -> tuple[str, str, str]:
    ends = "-" if each.interval is None else f"[{each.interval[0]:z.3f}, {each.interval[1]:z.3f}]"
    return ("-" if each.value is None else f"{each.value:z.3f}", ends, f"{each.n:,}")


def _notes(found: RatingAgreement) -> Sequence[str]:
    notes = [
        f"categories: {', '.join(found.categories)} (those that occur; AC2 depends on their number)",
        f"n: items that two of the raters have scored; intervals from {LEAST_CLUSTERS} independent items on",
    ]
    if not found.numeric:
        notes.append("scores are not numbers: nominal figures only")
    return notes
