"""Effects in a grid: the figures of each cell, and paired differences from the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from moot.deploy.results.figures.claims import ClaimSet, DurationSummary, claims_of
from moot.deploy.results.figures.summary import Summary, summarise
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.stats import PairedComparison, compare_paired
from moot.deploy.results.text import Interval
from moot.deploy.studies.ablation.cases import CellCases, groups_of, pairs
from moot.deploy.studies.ablation.grid import Cell
from moot.deploy.studies.ablation.means import (
    CaseMean,
    adjusted_p_values,
    brier_scores,
    case_means,
    debate_scores,
)


class BaselineComparison(FrozenModel):
    """Comparison of a cell (first) with the baseline (second), on the cases scored in both.

    Attributes:
        accuracy: difference in accuracy, with McNemar's test.
        p_adjusted: Benjamini-Hochberg adjusted p-value over all compared cells; None without a test.
        left_out: number of unpaired cases by reason: failed or without a verdict in one of the cells, another text
            under the same id, no gold label, or in the training data of a classifier (the claim or its group).
    """

    accuracy: PairedComparison
    p_adjusted: float | None
    left_out: dict[str, int]


class CellFigures(FrozenModel):
    """Figures of a cell; None is unknown.

    Attributes:
        cell: its name.
        values: its values by key, as text.
        same_as: cell whose run this one shares, because their settings are equivalent: the figures are those of that
            run, without additional cost, and without a comparison of their own. None for a run of its own.
        run: its folder.
        cases: number of cases, `answered + abstained + failed + open`.
        answers: number of cases by answer, most frequent first.
        scored: number of cases in `accuracy`: with a gold label, and not in the classifier's training data.
        accuracy_interval: 95 % Wilson interval.
        coverage: proportion of the cases with an answer.
        tokens_per_case: mean over finished cases, paid or reused, without calls made only for measurement.
        cost_usd: cost of the calls paid for in this run.
        replies_reused: number of replies from another run.
        brier: Brier score of the verdicts' distributions; None if no verdict has one and a known truth.
        brier_left_out: number of verdicts without a Brier score, by reason.
        claims: classification figures of claims; None for other tasks, or without claims.
        debates: measures of the debates by key of `moot.deploy.studies.ablation.means.MEASURES`; without those that no
            round has.
        seconds: duration of the debates of finished claims; None for other tasks.
        trained_on, group_trained_on: number of claims left out of all figures but the duration, because they, or others
            of their group, are in the training data of the run's classifier.
        vs_baseline: None for the baseline.
    """

    cell: str
    values: dict[str, str]
    same_as: str | None = None
    run: str
    simulated: bool
    cases: int
    answered: int
    answers: dict[str, int]
    abstained: int
    failed: int
    open: int
    scored: int
    accuracy: float | None
    accuracy_interval: Interval | None
    coverage: float | None
    rounds_mean: float | None
    tokens_per_case: float | None
    cost_usd: float | None
    replies_reused: int
    brier: CaseMean | None
    brier_left_out: dict[str, int]
    debates: dict[str, CaseMean] = Field(default_factory=dict)
    claims: ClaimSet | None
    seconds: DurationSummary | None
    trained_on: int
    group_trained_on: int
    vs_baseline: BaselineComparison | None


_COPIED = (
    *("run", "cases", "open", "failed", "scored", "accuracy", "accuracy_interval"),
    *("tokens_per_case", "cost_usd", "replies_reused", "simulated"),
)
"""Fields copied from the summary of the run."""


def measure_cells(
    cells: Sequence[Cell], folders: Mapping[str, Path], read: Mapping[str, CellCases], baseline: str
) -> list[CellFigures]:
    """Figures of the cells with a run of their own, compared with the baseline."""
    against = _comparisons(read, baseline)
    scored = {name: brier_scores(folders[name], each) for name, each in read.items()}
    groups = groups_of(read.values())
    brier = case_means({name: {"brier": scores} for name, (scores, _) in scored.items()}, baseline, groups)
    debates = case_means({cell.name: debate_scores(folders[cell.name]) for cell in cells}, baseline, groups)
    return [
        _figures(
            cell,
            summarise(folders[cell.name]),
            read[cell.name],
            brier=brier[cell.name].get("brier"),
            brier_left_out=dict(scored[cell.name][1]),
            debates=debates[cell.name],
            vs_baseline=against.get(cell.name),
        )
        for cell in cells
    ]


def with_run_figures(cell: Cell, run: CellFigures) -> CellFigures:
    """Cell with the figures of its run, which may be that of another cell."""
    if cell.name == run.cell:
        return run
    brier = run.brier and run.brier.model_copy(update={"vs_baseline": None})
    debates = {key: each.model_copy(update={"vs_baseline": None}) for key, each in run.debates.items()}
    own = {"debates": debates, "cell": cell.name, "values": _values(cell), "same_as": run.cell, "cost_usd": 0.0}
    return run.model_copy(update={**own, "brier": brier, "vs_baseline": None})


def _comparisons(read: Mapping[str, CellCases], baseline: str) -> dict[str, BaselineComparison]:
    """Comparison of every other cell with the baseline; empty if the baseline has not started."""
    if baseline not in read:
        return {}
    tests: dict[str, tuple[PairedComparison, dict[str, int]]] = {}
    for name, each in read.items():
        if name != baseline:
            known, left_out = pairs(each, read[baseline])
            base = read[baseline]
            outcomes = [each.right(i) for i in known], [base.right(i) for i in known]
            tests[name] = compare_paired(*outcomes, [base.groups[i] for i in known]), left_out
    adjustments = adjusted_p_values([test.p_value for test, _ in tests.values()])
    return {
        name: BaselineComparison(accuracy=test, p_adjusted=p, left_out=left_out)
        for (name, (test, left_out)), p in zip(tests.items(), adjustments, strict=True)
    }


def _figures(cell: Cell, summary: Summary, read: CellCases, **compared: Any) -> CellFigures:
    """Figures of a cell; `compared` are the fields by name that depend on other cells or on the record's details."""
    return CellFigures(
        cell=cell.name,
        values=_values(cell),
        **{name: getattr(summary, name) for name in _COPIED},
        answered=read.answered,
        answers=read.answers,
        abstained=read.abstained,
        coverage=read.answered / summary.cases if summary.cases else None,
        rounds_mean=summary.debate_rounds_mean,
        **claims_of(summary.detection),
        **compared,
    )


def _values(cell: Cell) -> dict[str, str]:
    return {key: value.text for key, value in cell.values.items()}
