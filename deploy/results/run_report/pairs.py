"""Report of several runs over the same cases: figures side by side, paired differences, and each case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from moot.deploy.results.case_table import CaseColumn, case_columns, clipped, outcome
from moot.deploy.results.figures.comparison import (
    RunRow,
    compare_records,
    comparison_blocks,
    differing_blocks,
    differing_cases,
    run_names,
)
from moot.deploy.results.record import RunRecord
from moot.deploy.results.report.blocks import Block, Chart, Guide, Heading, Note, Series
from moot.deploy.results.stats import paired_sentence
from moot.deploy.results.text import times

_OF_CASE = ("case", "question", "gold")
"""Columns that are equal in all runs."""

_OF_RUN = ("outcome", "answer")
"""Columns of each run, named after it."""


def side_by_side(runs: Sequence[RunRecord]) -> list[CaseColumn]:
    """The first run's cases, with the outcome and the answer of each run, and whether any is another."""
    first, *names = run_names([run.info.name for run in runs])
    columns = [
        replace(each, title=f"{each.title}: {first}") if each.name in _OF_RUN else each
        for each in case_columns(runs[0])
        if each.name in (*_OF_CASE, *_OF_RUN) or each.hidden
    ]
    by_name = {column.name: column for column in columns}
    ids = [str(case_id) for case_id in by_name["case"].values]
    verdicts = [[run.by_case.get(case_id) for case_id in ids] for run in runs]
    answers = [[verdict and verdict.answer for verdict in of_run] for of_run in verdicts]
    outcomes = [[outcome(run, case_id) for case_id in ids] for run in runs]
    others = {each.case_id for each in differing_cases(runs)}
    differ = ["differ" if case_id in others else "same" for case_id in ids]
    note = "whether outcome or answer differ, on cases that all runs share"
    columns.insert(1, CaseColumn("differ", "Runs", differ, note, coded=True))
    shown = [clipped(pa.chunked_array([pa.array(of_run, pa.string())])).to_pylist() for of_run in answers]
    of_runs: Mapping[str, Sequence[Sequence[str | None]]] = {"outcome": outcomes, "answer": shown}
    for kind, values in of_runs.items():
        after = next((place for place, column in enumerate(columns, 1) if column.name == kind), len(columns))
        columns[after:after] = [
            CaseColumn(f"{kind}_{place}", f"{kind.title()}: {name}", values[place], coded=True)
            for place, name in enumerate(names, 1)
        ]
    return columns


MOST_CASES = 500
"""Differing cases that the page lists; the others are in the runs' own tables."""


def pairs(runs: Sequence[RunRecord]) -> Iterator[Block]:
    """The comparison of the runs with the first one, as `moot compare --cases` shows it.

    Raises:
        ConfigError: the runs have no case in common.
    """
    found = compare_records(runs, cases=True)
    names = run_names([row.run for row in found.rows])
    cases = found.cases or []
    for block in comparison_blocks(found.model_copy(update={"cases": None})):
        yield block
        if isinstance(block, Heading) and block.level == 1:
            yield from (Note(line, "strong") for line in _answer(found.rows, names))
    accuracies = [row.accuracy_interval or (None, None) for row in found.rows]
    yield Heading("Side by side")
    yield Chart(
        "runs",
        "Accuracy against tokens per case, by run",
        [
            Series(name, [row.tokens_per_case], [row.accuracy], low=[low], high=[high], style=place)
            for place, (name, row, (low, high)) in enumerate(zip(names, found.rows, accuracies, strict=True))
            if row.tokens_per_case is not None
        ],
        x_label="tokens per case, mean",
        y_label="accuracy",
        y_range=(0.0, 1.0),
        note="Higher is better, further left is cheaper. Bars are 95 % intervals of each run alone: whether two "
        "runs differ is told by the paired differences, not by the overlap of bars.",
    )
    others = [(name, row.vs_first) for name, row in zip(names, found.rows, strict=True) if row.vs_first is not None]
    ends = [pair.interval or (None, None) for _, pair in others]
    yield Chart(
        "paired-differences",
        f"Paired difference of accuracy from {names[0]}, on the cases that both scored",
        [
            Series(
                "difference",
                [name for name, _ in others],
                [pair.difference for _, pair in others],
                low=[low for low, _ in ends],
                high=[high for _, high in ends],
            )
        ],
        y_label="difference of accuracy",
        guides=[Guide("no difference", y=0.0)],
        note="Intervals are 95 %. They contain 0 exactly if McNemar's test, over groups of dependent cases, shows no "
        "difference.",
    )
    yield Heading("Cases that differ")
    yield from differing_blocks(cases, names, MOST_CASES)


def _answer(rows: Sequence[RunRow], names: Sequence[str]) -> Iterator[str]:
    """Whether each run differs from the first one in accuracy, and what it costs beside it."""
    for name, row in zip(names, rows, strict=True):
        if row.vs_first is None:
            continue
        if row.vs_first.difference is None:
            yield f"{name} and {names[0]} have no scored case in common."
        else:
            found = paired_sentence(row.vs_first, f"in {name}", f"in {names[0]}")
            yield f"{name} against {names[0]}, in accuracy on the same cases: {found}{_cost(row, rows[0])}."


def _cost(row: RunRow, first: RunRow) -> str:
    if not first.tokens_per_case or row.tokens_per_case is None:
        return ""
    return f", at {times(row.tokens_per_case / first.tokens_per_case)} the tokens per case"
