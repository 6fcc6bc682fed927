"""Contentiousness: every level has a style, relative to one's own position, and the described levels are met
exactly."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.contentiousness import STYLES, contentiousness_level


@given(st.floats(0.0, 1.0))
def test_every_level_has_a_manner_made_of_described_ones(level: float) -> None:
    manner = contentiousness_level(level).style
    for part in ("tone", "emphasis", "language"):
        described = [getattr(known, part) for known in STYLES.values()]
        assert any(getattr(manner, part).startswith(words) for words in described)


@pytest.mark.parametrize("level", STYLES)
def test_described_levels_are_met_exactly(level: float) -> None:
    assert contentiousness_level(level).style is STYLES[level]


def test_between_two_levels_the_nearer_comes_first() -> None:
    low, high = STYLES[0.5], STYLES[0.7]
    assert contentiousness_level(0.52).style.tone == f"{low.tone}; and a little: {high.tone}"
    assert contentiousness_level(0.68).style.tone == f"{high.tone}; and a little: {low.tone}"
    assert "just as much" in contentiousness_level(0.6).style.tone
    assert contentiousness_level(0.95).style is STYLES[0.9]


@pytest.mark.parametrize("level", [-0.1, 1.1, float("nan")])
def test_what_is_no_level_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        contentiousness_level(level)


def test_no_level_turns_a_debater_against_its_own_position() -> None:
    """The printed table is written for one side: unchanged, it would have the proponent list its own risks."""
    for level, manner in STYLES.items():
        assert not re.search(r"\byour (own|stand|side)\b", f"{manner.tone} {manner.emphasis} {manner.language}")
        if level >= 0.7:
            assert manner.emphasis.count("other side's stand") == 1
