"""Figures of a run for a list of runs, computed on columns: a million cases take about a second.

They equal those of the summary, which reads every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.prices import Price, price_of
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.accuracy import share
from moot.deploy.results.figures.costs import CALL_COLUMNS, USED, has_known_tokens, lacks_usage, paid_calls
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.record import latest_rows
from moot.deploy.results.references import GROUP_COLUMNS, References, case_groups, scored_verdicts
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.run_info import read_run_info
from moot.deploy.results.text import Interval
from moot.metrics.significance import wilson_interval
from moot.protocols.messages import Usage


class RunFigures(FrozenModel):
    """Figures of a run; see `Summary` for their meaning.

    Attributes:
        cases: number of cases of the run, or those seen so far where it is unknown.
    """

    simulated: bool

    cases: int
    finished: int
    failed: int
    scored: int
    accuracy: float | None
    accuracy_interval: Interval | None
    tokens_paid: int | None
    calls_without_usage: int
    cost_usd: float | None


def run_figures(folder: str | Path) -> RunFigures:
    """Figures of a run, finished or not.

    Raises:
        RecordError: the folder has no run or cannot be read.
    """
    if (Path(folder) / CLASSIFIER_CARD).exists():  # accuracies exclude claims that the classifier was trained on
        summary = summarise(folder)
        return RunFigures(**{name: getattr(summary, name) for name in RunFigures.model_fields})
    info = read_run_info(folder)
    recorded = read_table(folder, "verdicts", ["answer", "failed", "gold", "correct"])
    verdicts = latest_rows(scored_verdicts(recorded, folder))
    failed = pc.sum(verdicts["failed"]).as_py() or 0
    finished = verdicts.filter(pc.invert(pc.fill_null(verdicts["failed"], False)))
    right, scored = pc.sum(finished["correct"]).as_py() or 0, pc.count(finished["correct"]).as_py()
    cases = read_table(folder, "cases", GROUP_COLUMNS)
    return RunFigures(
        simulated=info.simulated,
        cases=max(cases.num_rows, verdicts.num_rows, info.cases or 0),
        finished=verdicts.num_rows - failed,
        failed=failed,
        scored=scored,
        accuracy=right / scored if scored else None,
        accuracy_interval=_interval(finished, right, scored, case_groups(cases)),
        **_paid(folder, info.prices),
    )


def _interval(finished: pa.Table, right: int, scored: int, groups: Mapping[str, str]) -> Interval | None:
    """Interval of the accuracy, as of `share`, without a list of all cases where they are independent."""
    if groups or not scored:
        known = finished.filter(finished["correct"].is_valid())
        outcomes = zip(known["case_id"].to_pylist(), known["correct"].to_pylist(), strict=True)
        return share(outcomes, References({}, groups).group)[1]
    ends = wilson_interval(right, scored)
    return ends.low, ends.high


def _paid(folder: str | Path, prices: Mapping[str, Price]) -> dict[str, Any]:
    """Usage and cost of the calls paid for in this run, by field of `RunFigures`."""
    calls = paid_calls(read_table(folder, "turns", CALL_COLUMNS))
    silent = pc.sum(lacks_usage(calls)).as_py() or 0
    sums = calls.group_by("model").aggregate([(name, "sum") for name in USED]).to_pylist()
    usd: float | None = 0.0
    for row in sums:
        price = price_of(row["model"] or "", prices)
        used = Usage(row["prompt_tokens_sum"] or 0, row["completion_tokens_sum"] or 0)
        usd = None if usd is None or price is None else usd + (price.cost_usd(used) or 0.0)
    tokens = sum(row[f"{name}_sum"] or 0 for row in sums for name in USED)
    is_known = not calls.num_rows or pc.any(has_known_tokens(calls)).as_py()
    return {"tokens_paid": tokens if is_known else None, "calls_without_usage": silent, "cost_usd": usd}
