"""Agreement of a run's text scores with human raters, by trait, beside that of the raters with each other.

Traits and parts of a task are never pooled: differences between traits would count as agreement on each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.record.tables import read_table
from moot.deploy.results.record import RunRecord, VerdictRow
from moot.deploy.results.references import References
from moot.deploy.results.report.blocks import Block, Note, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.stats import IntervalEstimate, coefficient, in_units, mean_estimate
from moot.deploy.results.text import Interval, count
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import left_out_weights
from moot.metrics.weighted_kappa import quadratic_weighted_kappa, resampled_weighted_kappa
from moot.protocols.case import Criterion
from moot.protocols.text.numbers import stated_number

VERDICT, MEAN = "verdict", "raters' mean"
"""Names of the scorers that are not single raters."""


class ScorePair(FrozenModel):
    """Agreement of two scorers of the same texts. None is unknown; intervals are 95 %, by group of cases.

    Attributes:
        first, second: `verdict`, `rater 1`, `rater 2` ... or `raters' mean`.
        n: cases that both have scored, with a score in the verdict.
        qwk: quadratically weighted kappa, in [-1, 1].
        exact: share of equal scores; unknown for a mean of raters, which may lie between the scores of the scale.
        adjacent: share of scores at most 1 apart; nearly always 1 between human raters, so little informative.
    """

    first: str
    second: str
    n: int
    qwk: float | None
    qwk_interval: Interval | None
    exact: float | None
    exact_interval: Interval | None
    adjacent: float | None


class TraitScores(FrozenModel):
    """Scores of one trait of one assignment.

    Attributes:
        part: part of the task, such as an essay set; empty for a task of one part.
        trait, lowest, highest, assignment: fields of the criterion.
        cases: finished cases of this trait.
        without_score: cases whose verdict is no score of the scale.
        pairs: the verdict with each rater and with their mean, then the raters with each other.
    """

    part: str
    trait: str
    lowest: int
    highest: int
    assignment: str
    cases: int
    without_score: int
    pairs: list[ScorePair]


def trait_scores(record: RunRecord, finished: Sequence[VerdictRow]) -> list[TraitScores] | None:
    """Agreement by part and trait, in order of first occurrence; None for a run that scores no texts.

    Args:
        record: the run's record.
        finished: the verdicts that did not fail.

    Raises:
        RecordError: the record cannot be read.
    """
    references = record.references
    scored = [verdict for verdict in finished if references[verdict.case_id].scoring == "score"]
    if not scored:
        return None
    criteria = _criteria(record.folder)
    traits: dict[tuple[str, Criterion], list[VerdictRow]] = defaultdict(list)
    for verdict in scored:
        if (criterion := criteria.get(verdict.case_id)) is not None:
            traits[references[verdict.case_id].part, criterion].append(verdict)
    order = dict.fromkeys((references[case_id].part, criterion) for case_id, criterion in criteria.items())
    return [_trait(*trait, traits[trait], references) for trait in order if trait in traits]


def _criteria(folder: str | Path) -> dict[str, Criterion]:
    rows = read_table(folder, "cases", ["index", "criterion"]).to_pylist()
    rows.sort(key=lambda row: row["index"])
    return {row["case_id"]: msgspec.json.decode(row["criterion"], type=Criterion) for row in rows if row["criterion"]}


def _trait(part: str, criterion: Criterion, verdicts: Sequence[VerdictRow], references: References) -> TraitScores:
    columns = _columns(criterion, verdicts, references)
    groups = np.array([references.group(verdict.case_id) for verdict in verdicts])
    raters = [name for name in columns if name not in (VERDICT, MEAN)]
    pairs = [(VERDICT, name) for name in columns if name != VERDICT] + list(combinations(raters, 2))
    known = ~np.isnan(columns[VERDICT])
    return TraitScores(
        part=part,
        trait=criterion.trait,
        lowest=criterion.lowest,
        highest=criterion.highest,
        assignment=criterion.assignment,
        cases=len(verdicts),
        without_score=int((~known).sum()),
        pairs=[_pair(criterion, columns, pair, known, groups) for pair in pairs],
    )


def _columns(criterion: Criterion, verdicts: Sequence[VerdictRow], references: References) -> dict[str, Floats]:
    """Scores by scorer, each of shape `(cases,)`, NaN without a score. A mean needs at least two raters."""
    ratings = [references[verdict.case_id].ratings for verdict in verdicts]
    raters = max(map(len, ratings), default=0)
    table = np.full((raters, len(verdicts)), np.nan)
    for place, row in enumerate(ratings):
        table[: len(row), place] = [np.nan if score is None else score for score in row]
    given = [None if verdict.answer is None else stated_number(verdict.answer) for verdict in verdicts]
    inside = [np.nan if s is None or not criterion.lowest <= s <= criterion.highest else float(s) for s in given]
    known = ~np.isnan(table)
    rows = [place for place in range(raters) if known[place].any()]
    columns = {VERDICT: np.array(inside)} | {f"rater {place + 1}": table[place] for place in rows}
    if len(rows) > 1:
        counts = known.sum(axis=0)
        columns[MEAN] = np.where(counts > 1, np.nansum(table, axis=0) / np.maximum(counts, 1), np.nan)
    return columns


def _pair(
    criterion: Criterion,
    columns: Mapping[str, Floats],
    pair: tuple[str, str],
    known: npt.NDArray[np.bool_],
    groups: npt.NDArray[np.str_],
) -> ScorePair:
    both = known & ~np.isnan(columns[pair[0]] + columns[pair[1]])
    one, other = (columns[name][both] for name in pair)
    ends, n = (criterion.lowest, criterion.highest), int(both.sum())
    qwk, exact = IntervalEstimate(), IntervalEstimate()
    if n:
        left_out = resampled_weighted_kappa(one, other, left_out_weights(groups[both]), *ends)
        qwk = coefficient(quadratic_weighted_kappa(one, other, *ends), left_out, lowest=-1.0)
    whole = MEAN not in pair and n > 0
    if whole:
        exact = mean_estimate((one == other).astype(np.float64), groups[both].tolist(), is_share=True)
    return ScorePair(
        first=pair[0],
        second=pair[1],
        n=n,
        qwk=qwk.value,
        qwk_interval=qwk.interval,
        exact=exact.value,
        exact_interval=exact.interval,
        adjacent=float((np.abs(one - other) <= 1.0).mean()) if whole else None,
    )


SCORES_NOTE = (
    "QWK: quadratically weighted kappa. [95 %]: over essays. Within 1 has little meaning: raters nearly always "
    "are. Traits are never pooled."
)
"""Notes on `score_blocks`."""


def score_blocks(scores: Sequence[TraitScores]) -> list[Block]:
    """Report blocks of the agreement: for each trait a row with its name, then one for each pair."""
    rows = list[tuple[str, ...]]()
    for each in scores:
        rows.append((_name(each, scores), "", "", "", ""))
        for pair in each.pairs:
            qwk = IntervalEstimate(value=pair.qwk, interval=pair.qwk_interval)
            exact = IntervalEstimate(value=pair.exact, interval=pair.exact_interval)
            shares = [in_units(share, 2) for share in (exact, IntervalEstimate(value=pair.adjacent))]
            of_mean = MEAN in pair.second
            names = f"{pair.first}, {pair.second}"
            rows.append((names, count(pair.n), in_units(qwk, 2), *(("-", "-") if of_mean else shares)))
    header = ("agreement of", "n", "QWK", "exact", "within 1")
    return [Table("", header, rows), Note(SCORES_NOTE, "dim")] if rows else []


def _name(found: TraitScores, among: Sequence[TraitScores]) -> str:
    name = f"{found.part}: " if found.part else ""
    name += f"{found.trait}, {found.lowest}-{found.highest}"
    scale = (found.part, found.trait, found.lowest, found.highest)
    alike = [each for each in among if (each.part, each.trait, each.lowest, each.highest) == scale]
    name += f": {found.assignment}" if len(alike) > 1 and found.assignment else ""
    return name + (f" ({found.without_score} of {found.cases} without a score)" if found.without_score else "")
