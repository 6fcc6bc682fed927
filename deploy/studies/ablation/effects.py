"""Effects in a grid: the figures of each cell, and paired differences from the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from moot.actors.record.folder import RunFolder
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.detection import DurationSummary, claims_of
from moot.deploy.results.detection.figures import ClaimSet
from moot.deploy.results.record.run_info import read_run_info
from moot.deploy.results.report.blocks import Block
from moot.deploy.results.report.display import DisplayMixin
from moot.deploy.results.summaries.accuracy import PairedComparison, compare_paired
from moot.deploy.results.summaries.summary import Summary, summarise
from moot.deploy.results.text import Interval, cases
from moot.deploy.studies.ablation.cases import CellCases, groups_of, pairs, read_cell
from moot.deploy.studies.ablation.grid import Axis, Cell
from moot.deploy.studies.ablation.main_effects import MainEffect, main_effects
from moot.deploy.studies.ablation.means import (
    CaseMean,
    adjusted_p_values,
    brier_scores,
    case_means,
    debate_scores,
)
from moot.protocols.errors import ConfigError

FEW = 100
"""Minimum number of pairs in a comparison without a warning."""


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


class Ablation(DisplayMixin, FrozenModel):
    """Figures of a grid.

    Attributes:
        folder: parent of the cells' folders.
        baseline: name of the baseline cell, or of the cell whose run it shares.
        cells: the started cells, in the order of the grid.
        not_begun: names of the other cells.
        main_effects: by key and value; empty for a single key, or if a cell has not started.
        shared_replies: whether later cells reuse the replies of the first one.
        warnings: caveats of the figures.
    """

    schema_version: int
    folder: str
    task: str | None
    simulated: bool
    baseline: str
    cells: list[CellFigures]
    not_begun: list[str]
    main_effects: list[MainEffect]
    shared_replies: bool
    warnings: list[str]

    def display_name(self) -> str:
        """See `DisplayMixin`."""
        return f"{self.folder}: {len(self.cells):,} cells"

    def report_blocks(self) -> list[Block]:
        """See `DisplayMixin`."""
        from moot.deploy.studies.ablation.report import ablation_blocks

        return ablation_blocks(self)


def measure_grid(
    folder: str | Path,
    axes: Sequence[Axis],
    grid: Sequence[Cell],
    baseline: Cell,
    *,
    same_as: Mapping[str, str] | None = None,
    shared_replies: bool = False,
) -> Ablation:
    """Figures of a grid, finished or not.

    Args:
        folder: parent of the cells' folders.
        axes: the varied keys.
        grid: the cells.
        baseline: one of them.
        same_as: for each cell without a run of its own, the name of the cell whose run it shares.
        shared_replies: copied into the result.

    Raises:
        ConfigError: no cell has started.
        RecordError: a record cannot be read.
    """
    runs = {cell.name: (same_as or {}).get(cell.name, cell.name) for cell in grid}
    folders = {run: Path(folder) / run for run in runs.values()}
    started = [cell for cell in grid if RunFolder(folders[runs[cell.name]]).exists()]
    if not started:
        raise ConfigError(f"{folder}: no cell of this grid has started")
    own = [cell for cell in started if runs[cell.name] == cell.name]
    read = {cell.name: read_cell(folders[cell.name]) for cell in own}
    figures = _measured(own, folders, read, runs[baseline.name])
    by_run = {each.cell: each for each in figures}
    facts = read_run_info(folders[own[0].name])
    has_main_effects = len(axes) > 1 and len(started) == len(grid)
    tokens = {each.cell: each.tokens_per_case for each in figures}
    return Ablation(
        schema_version=facts.schema_version,
        folder=str(folder),
        task=facts.task,
        simulated=any(each.simulated for each in figures),
        baseline=runs[baseline.name],
        cells=[_with_run_figures(cell, by_run[runs[cell.name]]) for cell in started],
        not_begun=[cell.name for cell in grid if cell not in started],
        main_effects=main_effects(axes, grid, runs, read, tokens, baseline) if has_main_effects else [],
        shared_replies=shared_replies,
        warnings=_warnings(figures, runs[baseline.name]),
    )


def _measured(
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


def _with_run_figures(cell: Cell, run: CellFigures) -> CellFigures:
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


def _warnings(figures: Sequence[CellFigures], baseline: str) -> list[str]:
    warnings = [f"{each.cell}: {cases(each.open)} without a verdict" for each in figures if each.open]
    if all(each.cell != baseline for each in figures):
        warnings.append(f"the baseline, {baseline}, has not started: nothing is compared")
    compared = [each.vs_baseline.accuracy.n for each in figures if each.vs_baseline is not None]
    if compared and 0 < min(compared) < FEW:
        warnings.append(
            f"only {cases(min(compared))} in a comparison: only a large difference can be distinguished from chance; "
            f"take {FEW} or more"
        )
    return warnings
