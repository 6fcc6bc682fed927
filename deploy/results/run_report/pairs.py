"""Two runs or more over the same cases: figures side by side, paired differences, and the cases that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moot.deploy.results.report.blocks import Block, Chart, Guide, Heading, Note, Series
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.summaries.compare import RunRow, compare_records, run_names
from moot.deploy.results.summaries.comparison_blocks import comparison_blocks
from moot.deploy.results.summaries.differing_cases import differing_blocks
from moot.deploy.results.summaries.summary_rows import paired_sentence
from moot.deploy.results.text import times

MOST_CASES = 500
"""Differing cases that the page lists; the others are in the runs' own tables."""


def pairs(runs: Sequence[RunData]) -> Iterator[Block]:
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
