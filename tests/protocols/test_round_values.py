"""Values of a debate by round: those of `RoundFigures`, whatever a user's protocol notes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from moot.protocols.events import RoundFigures
from moot.protocols.round_values import ROUND_MEASURES, RoundValues, mean_over_sides, read_round_values

ODD: list[Any] = [None, 0, 0.5, -1, True, "0.5", math.nan, math.inf, [], ["a", "b"], {}, {"a": 0.5, "b": 1}]
ODD += [{"a": None, "b": 0.5}, {"a": "x", "b": 0.5}, {"a": True}, {"a": [1.0]}]
ODD += [10**400, -(10**400), {"a": 10**400, "b": 0.5}, {"a": 10**300}]


@pytest.mark.parametrize("value", ODD)
def test_they_are_read_as_the_figures_of_a_round(value: Any) -> None:
    figures = RoundFigures.read({"round": 2, "jsd": value})
    assert figures is not None
    read = figures.jsd
    expected = mean_over_sides(list(read.values())) if isinstance(read, dict) else read
    expected = float(len(expected)) if isinstance(expected, list) else expected
    assert read_round_values("round", {"round": 2, "jsd": value}) == RoundValues(2, {"jsd": expected})


def test_a_mean_that_no_float_holds_is_unknown() -> None:
    assert mean_over_sides([1e308, 1e308]) is None
    assert read_round_values("round", {"round": 1, "jsd": {"a": 1e308, "b": 1e308}}) == RoundValues(1, {"jsd": None})
    assert read_round_values("round", {"round": 10**400, "d": 10**400}) == RoundValues(10**400, {"d": None})


@pytest.mark.parametrize("number", [None, "1", 1.0, True])
def test_an_event_without_the_number_of_its_round_has_none(number: Any) -> None:
    assert RoundFigures.read({"round": number, "d": 0.5}) is None
    assert read_round_values("round", {"round": number, "d": 0.5}) is None


def test_a_gate_has_those_of_the_openings() -> None:
    assert read_round_values("gate", {"d": 0.5, "m": None, "skip": True}) == RoundValues(0, {"d": 0.5, "m": None})
    assert read_round_values("gate", {"skip": True}) is None
    assert read_round_values("stop", {"round": 1, "d": 0.5}) is None
    assert set(ROUND_MEASURES) <= set(RoundFigures.model_fields)
