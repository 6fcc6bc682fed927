"""Parser of the distributions that models write.

Models write probabilities that do not sum to 1, name labels outside the closed set, repeat labels or use other
spellings. Every repair is part of the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, field_validator

from moot.protocols.replies import Reply, json_text
from moot.protocols.reply_limits import case_label, most
from moot.protocols.text.labels import read_label

OTHER = "(other)"
"""Class for mass on anything outside the closed set."""

_SUM_TOLERANCE = 1e-6
_PERCENT_FROM = 10.0
_MOST_NAMED = 500
_LARGEST = 1e300
"""Largest accepted number: sums of larger ones would overflow."""


class Likelihood(Reply):
    """A label and its probability, from 0 to 1."""

    label: Annotated[str, Field(json_schema_extra=case_label()), BeforeValidator(json_text)]
    probability: float = Field(json_schema_extra={"minimum": 0, "maximum": 1})

    @field_validator("probability", mode="before")
    @classmethod
    def _number(cls, value: Any) -> float:
        # Non-numbers become NaN, which `clean` recognises.
        number: float = math.nan
        if isinstance(value, str):
            text = value.strip()
            with suppress(ValueError):
                number = float(text.rstrip("%")) / (100.0 if text.endswith("%") else 1.0)
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST:
            number = float(value)
        return number if abs(number) < _LARGEST else math.nan


class Predicted(Reply):
    """Base of replies with a distribution: a list of {label, probability}, of pairs, or a mapping."""

    distribution: list[Likelihood] = Field(min_length=1, max_length=_MOST_NAMED, json_schema_extra=most(10, "top_k"))

    @field_validator("distribution", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            value = list(value.items())
        if not isinstance(value, list | tuple):
            return value
        return [
            {"label": one[0], "probability": one[1]} if isinstance(one, list | tuple) and len(one) == 2 else one
            for one in value
        ]

    @field_validator("distribution")
    @classmethod
    def _some_mass(cls, value: list[Likelihood]) -> list[Likelihood]:
        if not any(one.probability > 0.0 and math.isfinite(one.probability) for one in value):
            raise ValueError("no label has a probability above 0")
        return value


@dataclass(frozen=True, slots=True, eq=False)
class CleanedDistribution:
    """Distribution over the closed set and `OTHER`.

    Attributes:
        labels: the closed set, then `OTHER`.
        probabilities: one per label, each in [0, 1], summing to 1; shape (k + 1,).
        changes: repairs, in order; each with `what` and, where they apply, `label`, `to` and `value`.
    """

    labels: tuple[str, ...]
    probabilities: npt.NDArray[np.float64]
    changes: tuple[Mapping[str, Any], ...] = ()

    @property
    def top(self) -> tuple[str, float]:
        """Most likely label and its probability; the first in the labels' order among equals."""
        place = int(self.probabilities.argmax())
        return self.labels[place], float(self.probabilities[place])

    def named(self) -> dict[str, float]:
        """Labels with mass, most likely first; equals in the labels' order."""
        order = np.argsort(-self.probabilities, kind="stable")
        return {self.labels[i]: float(self.probabilities[i]) for i in order if self.probabilities[i] > 0.0}


def clean(
    given: Sequence[Likelihood],
    labels: tuple[str, ...],
    choices: tuple[str, ...] = (),
    aliases: tuple[tuple[str, ...], ...] = (),
) -> CleanedDistribution:
    """Cleans a distribution that a model wrote.

    In this order: non-numbers and negative numbers are dropped; a sum of at least 10 is read as per cent; labels are
    mapped by the one reader of labels, unknown ones to `OTHER`; repeated ones are added up; the rest is divided by
    its sum. Each step that changed anything is listed in `changes`.

    Args:
        given: original pairs; at least one positive number, which `Predicted` ensures.
        labels: the closed set.
        choices: for lettered labels, the text behind each.
        aliases: other spellings per label; empty for none at all.

    Raises:
        ValueError: `given` has no positive number.

    >>> found = clean([Likelihood(label="Flu", probability=0.6), Likelihood(label="Plague", probability=0.2)], ("Flu",))
    >>> [round(float(p), 3) for p in found.probabilities], [change["what"] for change in found.changes]
    ([0.75, 0.25], ['unknown', 'renormalised'])
    """
    changes: list[dict[str, Any]] = []
    usable = [one for one in given if _usable(one, changes)]
    total = math.fsum(one.probability for one in usable)
    if not total > 0.0:
        raise ValueError("no label has a probability above 0")
    scale = 1.0
    if total >= _PERCENT_FROM:
        scale = 100.0
        changes.append({"what": "percent", "value": total})
    places = {label: i for i, label in enumerate((*labels, OTHER))}
    masses = np.zeros(len(places))
    seen: set[str] = set()
    for one in usable:
        read = read_label(one.label, labels, choices, aliases)
        label = _placed(one.label, places, None if read is None else read.label, changes)
        if label in seen and label != OTHER:
            changes.append({"what": "repeated", "label": label, "value": one.probability})
        seen.add(label)
        masses[places[label]] += one.probability / scale
    total = float(masses.sum())
    if abs(total - 1.0) > _SUM_TOLERANCE:
        changes.append({"what": "renormalised", "value": total})
    return CleanedDistribution(tuple(places), masses / total, tuple(changes))


def _usable(one: Likelihood, changes: list[dict[str, Any]]) -> bool:
    if not math.isfinite(one.probability):
        changes.append({"what": "not-a-number", "label": one.label})
        return False
    if one.probability < 0.0:
        changes.append({"what": "negative", "label": one.label, "value": one.probability})
        return False
    return True


def _placed(given: str, places: Mapping[str, int], label: str | None, changes: list[dict[str, Any]]) -> str:
    """Label of `given`; `label` is the reader's result."""
    if given in places and given != OTHER:
        return given
    if label is None:
        if given != OTHER:  # as prompts show it to the sides
            changes.append({"what": "unknown", "label": given, "to": OTHER})
        return OTHER
    changes.append({"what": "alias", "label": given, "to": label})
    return label
