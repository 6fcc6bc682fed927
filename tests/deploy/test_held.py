"""One Brier score for every reader: the same distribution scores alike in a summary and in a grid."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from moot.deploy.reading.summaries.consensus import Held, hold_against

LABELS = ("a", "Other", "b")


def test_the_score_by_hand() -> None:
    found = hold_against({"a": 0.5, "Other": 0.25, "(other)": 0.25}, LABELS, "Other")
    assert found == Held([0.5, 0.25, 0.0, 0.25], 1, 0.5**2 + 0.75**2 + 0.25**2)
    unnamed = hold_against({"a": 1.0}, LABELS, "b")
    assert isinstance(unnamed, Held)
    assert unnamed.brier == 2.0


@pytest.mark.parametrize(
    ("distribution", "labels", "gold", "why"),
    [
        (None, LABELS, "a", "no distribution"),
        ({}, LABELS, None, "no distribution"),
        ({"a": 1.0}, LABELS, None, "no gold label"),
        ({"a": 1.0}, LABELS, "A", "gold outside the labels"),
        ({"a": 1.0}, (), "a", "gold outside the labels"),
        ({"a": 1.0}, LABELS, "(other)", "gold outside the labels"),
        ({"a": 0.5, "other": 0.5}, LABELS, "a", "no distribution over the labels"),
        ({"a": None, "b": 0.5}, LABELS, "a", "no distribution over the labels"),
        ({"a": 0.9, "b": 0.9}, LABELS, "a", "no distribution over the labels"),
    ],
)
def test_what_has_no_score_says_why(
    distribution: Mapping[str, float | None] | None, labels: tuple[str, ...], gold: str | None, why: str
) -> None:
    assert hold_against(distribution, labels, gold) == why
