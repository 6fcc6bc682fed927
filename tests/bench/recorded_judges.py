"""Reads what people and models said of the same texts: ratings by several, and comparisons in both orders.

Four public layouts: PandaLM's test set (three people, two judges), QAGS (three people per sentence), LLMBar (six judges
in both orders, one human label) and JudgeBench (judges in both orders, labels that are facts).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Clusters = npt.NDArray[np.intp]

_JUDGEBENCH = re.compile(r"judge_name=(?P<way>[^,]+),judge_model=(?P<model>[^,]+)\.jsonl$")


@dataclass(frozen=True)
class Raters:
    """Several raters of the same units.

    Attributes:
        name: who rated what.
        ratings: `(raters, units)`, NaN for none.
        categories: all that could be said, in an order that means something where `ordered`.
        ordered: whether it does.
        clusters: `(units,)`, what units that belong together have in common.
        raters: their names, in the order of the rows; empty where rows are not persons.
    """

    name: str
    ratings: Floats
    categories: tuple[float, ...]
    ordered: bool
    clusters: Clusters
    raters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparisons:
    """Judges that compared pairs of texts in both orders.

    Attributes:
        name: of the set.
        gold: `(pairs,)`, 1 or 2.
        said: by judge, the text that won with text 1 shown first and with text 2 shown first: 1 or 2, 0 for a tie, NaN.
    """

    name: str
    gold: Floats
    said: Mapping[str, tuple[Floats, Floats]]


def pandalm_people(folder: Path) -> Raters:
    """Three people's preferences: -1 the first response, 0 a tie, 1 the second; clusters are equal tasks.

    Args:
        folder: `pandalm`.
    """
    rows = _array(folder / "testset-v1.json")
    ratings = [[_preference(row[f"annotator{person}"]) for row in rows] for person in (1, 2, 3)]
    names = ("annotator 1", "annotator 2", "annotator 3")
    return Raters("PandaLM: three people", np.array(ratings), (-1.0, 0.0, 1.0), True, _tasks(rows), names)


def pandalm_judges(folder: Path) -> Raters:
    """Two models' preferences on the same pairs, NaN where nothing could be read.

    Raises:
        ValueError: if a judge's file is not about the same pairs in the same order.
    """
    rows = _array(folder / "testset-v1.json")
    files = {"gpt-3.5-turbo": "gpt_result", "pandalm-7b": "pandalm_result"}
    ratings = []
    for judge, column in files.items():
        said = _array(folder / f"{judge}-testset-v1.json")
        if [row["idx"] for row in said] != [row["idx"] for row in rows]:
            raise ValueError(f"{folder}: the pairs of {judge} are not those of testset-v1.json")
        ratings.append([_preference(row[column]) for row in said])
    return Raters("PandaLM: two judges", np.array(ratings), (-1.0, 0.0, 1.0), True, _tasks(rows), tuple(files))


def qags_people(folder: Path, source: str) -> Raters:
    """Whether a summary's sentence is supported by its article (1) or not (0), by three of many people; clusters are
    summaries.

    Args:
        folder: `qags`.
        source: `cnndm` or `xsum`.
    """
    sentences = [
        (number, [float(response["response"] == "yes") for response in sentence["responses"]])
        for number, row in enumerate(_lines(folder / f"mturk_{source}.jsonl"))
        for sentence in row["summary_sentences"]
    ]
    clusters = np.array([number for number, _ in sentences], dtype=np.intp)
    ratings = np.array([said for _, said in sentences]).T
    return Raters(f"QAGS {source}: three of many people", ratings, (0.0, 1.0), False, clusters)


def llmbar_judges(folder: Path) -> Comparisons:
    """Six judges of pairs with a human label; with the outputs swapped the file already names the text that won.

    Args:
        folder: `llmbar_natural`.

    Raises:
        ValueError: if the judges' files are not about the same pairs.
    """
    files = {path.parts[-3]: _array(path) for path in sorted(folder.glob("*/Vanilla/result.json"))}
    pairs = {tuple((row["input"], row["label"]) for row in rows) for rows in files.values()}
    if len(pairs) != 1:
        raise ValueError(f"{folder}: {len(pairs)} different lists of pairs; the judges' files must be about the same")
    said = {}
    for judge, rows in files.items():
        by_order = [[_text(row["results"][0][order]["winner"]) for row in rows] for order in _SWAPS]
        said[judge] = (np.array(by_order[0]), np.array(by_order[1]))
    return Comparisons("LLMBar natural", np.array([float(label) for _, label in pairs.pop()]), said)


def judgebench_judges(folder: Path) -> Comparisons:
    """Judges of pairs with objective labels; a decision is about the order shown, so the second one is turned round.

    Args:
        folder: `judgebench`.

    Raises:
        ValueError: if the judges' files are not about the same pairs.
    """
    files = {_judge(path): _lines(path) for path in sorted(folder.glob("*.jsonl"))}
    pairs = {tuple((row["pair_id"], row["label"]) for row in rows) for rows in files.values()}
    if len(pairs) != 1:
        raise ValueError(f"{folder}: {len(pairs)} different lists of pairs; the judges' files must be about the same")
    said = {}
    for judge, rows in files.items():
        first, second = ([_DECISIONS[row["judgments"][order]["decision"]] for row in rows] for order in (0, 1))
        said[judge] = (np.array(first), np.array([_TURNED[winner] for winner in second]))
    return Comparisons("JudgeBench", np.array([_DECISIONS[label] for _, label in pairs.pop()]), said)


_SWAPS = ("swap = False", "swap = True")
_DECISIONS = {"A>B": 1.0, "B>A": 2.0, "A=B": 0.0}
_TURNED = {1.0: 2.0, 2.0: 1.0, 0.0: 0.0}
_PREFERENCES = {"1": -1.0, "0": 0.0, "Tie": 0.0, "2": 1.0, "garbage": np.nan}


def _judge(path: Path) -> str:
    """`o1-mini-2024-09-12 (arena_hard)` from a file's name."""
    found = _JUDGEBENCH.search(path.name)
    if found is None:
        raise ValueError(f"{path}: the name does not say the judge")
    return f"{found['model'].rpartition('_')[2]} ({found['way']})"


def _preference(said: object) -> float:
    """A preference from what a file says: a number, or its text."""
    return _PREFERENCES[str(said)]


def _text(winner: str | None) -> float:
    """The text that won; NaN where the judge named none."""
    return np.nan if winner is None else float(winner)


def _tasks(rows: Sequence[Mapping[str, Any]]) -> Clusters:
    """Rows with the same instruction and input are one cluster."""
    numbers: dict[tuple[str, str], int] = {}
    given = [(row["instruction"], row["input"]) for row in rows]
    return np.array([numbers.setdefault(task, len(numbers)) for task in given], dtype=np.intp)


def _array(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that is one JSON array."""
    rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return rows


def _lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file with one JSON object a line."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
