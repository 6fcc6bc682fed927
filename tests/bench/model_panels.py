"""Reads what several models said of the same multiple-choice questions, as distributions over the options.

Two public layouts, each `FOLDER/<model>/<file>.csv`: probabilities of the tokens at the answer's place
(LLM_MCQ_LogProbs), and option probabilities that a model states (deepseek_benchmarking, LSAT).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float64]

_TOKENS = ("a", "b", "c", "d")
_OPTIONS = ("A", "B", "C", "D", "E")


@dataclass(frozen=True)
class Panel:
    """Several models on the same questions.

    Attributes:
        name: what was asked, and how the probabilities came about.
        truth: `(n,)`, the number of the right option.
        rows: by model, `(n, k)` distributions; NaN where a model gave none.
        rescaled: by model, how many rows did not sum to 1 within 0.01 and were divided by their sum.
    """

    name: str
    truth: npt.NDArray[np.intp]
    rows: Mapping[str, Rows]
    rescaled: Mapping[str, int]


def token_panel(folder: Path, stage: str) -> Panel:
    """Token probabilities of `a` to `d`; the rows of all models' files are the same questions in the same order.

    Args:
        folder: `mcq_logprobs`.
        stage: `Direct` or `afterThinking`.

    Raises:
        ValueError: if there is no such file, or the models' files do not have the same right answers.
    """
    said: dict[str, list[tuple[int, list[float]]]] = {}
    for path in sorted(folder.glob(f"*/*_LogProbs_{stage}.csv")):
        said[path.parent.name] = [
            # The other columns are other tokens; an empty cell is a token that was not among the likeliest.
            (int(row["answer"]), [_probability(row.get(token, ""), empty=0.0) for token in _TOKENS])
            for row in _table(path)
        ]
    if not said:
        raise ValueError(f"{folder}: no file of the form MODEL/NAME_LogProbs_{stage}.csv")
    answers = {tuple(answer for answer, _ in rows) for rows in said.values()}
    if len(answers) > 1:
        raise ValueError(f"{folder}: the right answers of the models' files differ, so their rows are not the same")
    when = {"Direct": "asked directly", "afterThinking": "after reasoning"}[stage]
    stated = {model: [masses for _, masses in rows] for model, rows in said.items()}
    return _panel(f"token probabilities, {when}", answers.pop(), stated)


def stated_panel(folder: Path) -> Panel:
    """Stated probabilities of `A` to `E`; the files are in different orders, so they are joined on `Question ID`.

    Args:
        folder: `llm_confidence_panel`.

    Raises:
        ValueError: if there is no such file, or the models' files have other questions or right answers.
    """
    said: dict[str, dict[str, tuple[int, list[float]]]] = {}
    for path in sorted(folder.glob("*/lsat_ar_test_processed.csv")):
        said[path.parent.name] = {
            row["Question ID"]: (
                _OPTIONS.index(row["correct_answer"].strip()),
                [_probability(row[option], empty=math.nan) for option in _OPTIONS],
            )
            for row in _table(path)
        }
    if not said:
        raise ValueError(f"{folder}: no file of the form MODEL/lsat_ar_test_processed.csv")
    questions = sorted(next(iter(said.values())))
    if any(sorted(rows) != questions for rows in said.values()):
        raise ValueError(f"{folder}: the models' files do not have the same Question IDs")
    answers = {tuple(rows[question][0] for question in questions) for rows in said.values()}
    if len(answers) > 1:
        raise ValueError(f"{folder}: the right answers of the models' files differ")
    stated = {model: [rows[question][1] for question in questions] for model, rows in said.items()}
    return _panel("stated probabilities, after reasoning", answers.pop(), stated)


def _panel(name: str, truth: Sequence[int], stated: Mapping[str, list[list[float]]]) -> Panel:
    """Divide each row by its sum; a row that is incomplete, negative or without mass is none."""
    rows, rescaled = {}, {}
    for model, masses in stated.items():
        found = np.array(masses)
        total = found.sum(axis=1, keepdims=True)
        usable = (total > 0.0) & (found >= 0.0).all(axis=1, keepdims=True)
        rows[model] = np.divide(found, total, out=np.full(found.shape, np.nan), where=usable)
        rescaled[model] = int((usable & (np.abs(total - 1.0) > 0.01)).sum())
    return Panel(name, np.array(truth, dtype=np.intp), rows, rescaled)


def _table(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a file; cells hold line breaks, and some headers are not UTF-8."""
    with path.open(encoding="utf-8", errors="replace", newline="") as lines:
        yield from csv.DictReader(lines)


def _probability(cell: str | None, *, empty: float) -> float:
    """A cell's number; NaN for what is none."""
    if not cell:
        return empty
    try:
        return float(cell)
    except ValueError:
        return math.nan
