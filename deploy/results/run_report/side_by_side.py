"""Cases of several runs in one table: what each run answered, and whether the runs differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from moot.deploy.results.run_report.case_table import clipped
from moot.deploy.results.run_report.cases import CaseColumn, case_columns, outcome
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.summaries.compare import run_names
from moot.deploy.results.summaries.differing_cases import differing_cases

_OF_CASE = ("case", "question", "gold")
"""Columns that are equal in all runs."""

_OF_RUN = ("outcome", "answer")
"""Columns of each run, named after it."""


def side_by_side(runs: Sequence[RunData]) -> list[CaseColumn]:
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
