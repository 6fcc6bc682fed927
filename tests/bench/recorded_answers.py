"""Reads answers of four models to TruthfulQA with the log-probability of every token, and what was said of their truth.

The layout is that of benedictflorance/truthfulqa_experiments, `outputs/`: `MODEL_output_labeled.csv` has the token
log-probabilities as JSON in a cell and `pred`, the verdict of a fine-tuned judge; `MODEL_outputs_annotated.csv` has the
class that people gave the same answer.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from moot.metrics.ragged import Ragged

Floats = npt.NDArray[np.float64]

MODELS = ("ada", "babbage", "curie", "davinci")

TRUE = ("true", "true: fact", "true: tautology", "mostly true")
FALSE = ("false", "mostly untrue")
"""Classes with one meaning, stripped and in lower case; the others (and none) are left out."""

OPENING = (" A", ":")
"""The first tokens of every answer, which the prompt asks for."""


@dataclass(frozen=True)
class Answers:
    """A model's answers.

    Attributes:
        model: its name.
        logprobs: natural logarithms, from the first token of `OPENING` on.
        judged_true: `(n,)`, 1 where the judge calls the answer true, 0 where not.
        people_true: `(n,)`, 1 for a class of `TRUE`, 0 for one of `FALSE`, NaN for others.
        classes: how many answers have each class of people, "" for none.
        questions: `(n,)`, the number of the question, the same for every model.
    """

    model: str
    logprobs: Ragged
    judged_true: Floats
    people_true: Floats
    classes: Mapping[str, int]
    questions: npt.NDArray[np.intp]


def answers(folder: Path) -> list[Answers]:
    """Every model's answers.

    Args:
        folder: `truthfulqa_gpt3_logprobs`.

    Raises:
        ValueError: if the two files of a model are not about the same answers, or an answer does not begin with
            `OPENING`.
    """
    numbers: dict[str, int] = {}
    return [_answers(folder, model, numbers) for model in MODELS]


def _answers(folder: Path, model: str, numbers: dict[str, int]) -> Answers:
    judged = _table(folder / f"{model}_output_labeled.csv")
    annotated = _table(folder / f"{model}_outputs_annotated.csv")
    given = [[(row["question"], row["model_answer"].strip()) for row in rows] for rows in (judged, annotated)]
    if given[0] != given[1]:
        raise ValueError(f"{folder}: the two files of {model} are not about the same answers")
    tokens = [json.loads(row["logprobs"]) for row in judged]
    if any(tuple(answer["tokens"][: len(OPENING)]) != OPENING for answer in tokens):
        raise ValueError(f"{folder}: an answer of {model} does not begin with {''.join(OPENING)!r}")
    classes = [row["Truthfulness"].strip().casefold() for row in annotated]
    truth = {**dict.fromkeys(TRUE, 1.0), **dict.fromkeys(FALSE, 0.0)}
    return Answers(
        model=model,
        logprobs=Ragged.from_lists([answer["token_logprobs"] for answer in tokens]),
        judged_true=np.array([float(row["pred"]) for row in judged]),
        people_true=np.array([truth.get(one, np.nan) for one in classes]),
        classes=Counter(classes),
        questions=np.array([numbers.setdefault(question, len(numbers)) for question, _ in given[0]], dtype=np.intp),
    )


def _table(path: Path) -> list[dict[str, str]]:
    """The rows of a file; cells hold line breaks."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))
