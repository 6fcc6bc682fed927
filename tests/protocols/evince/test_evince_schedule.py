"""The dial's schedules: their printed levels, their bounds, and what the adaptive one reacts to."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from not_none import not_none

from moot.protocols.evince.schedule import NEAR_ZERO, RoundSignals, first_level, next_level
from moot.protocols.evince.settings import EvinceContentiousnessSettings, EvinceSettings, QualityGateSettings, Schedule
from moot.protocols.evince.turn_loop import quality_gate

KAPPA = EvinceContentiousnessSettings()
NEAR = RoundSignals(0.05, 0.01, 0.1, 0.9, 0.3)
FAR = RoundSignals(0.9, 0.6, 0.0, 0.5, 0.9)
SHARE = st.floats(0.0, 1.0)
SIGNALS = st.builds(
    RoundSignals, SHARE, st.floats(0.0, math.log(2.0)), st.none() | st.floats(-1.0, 1.0), st.none() | SHARE, SHARE
)


def levels(
    schedule: Schedule, rounds: int = 5, signals: RoundSignals = NEAR, kappa: EvinceContentiousnessSettings = KAPPA
) -> list[float | None]:
    found = [first_level(schedule, kappa)]
    for done in range(rounds):
        level = next_level(schedule, kappa, done=done, max_rounds=rounds, level=found[-1], signals=signals).level
        found.append(level)
    return found


def test_schedules_without_a_dial() -> None:
    assert levels("none") == levels("ensemble") == [None] * 6


def test_fixed_linear_exponential() -> None:
    assert levels("fixed") == [0.9] * 6
    assert levels("linear") == pytest.approx([0.9, 0.74, 0.58, 0.42, 0.26, 0.1])
    assert levels("exponential") == pytest.approx([0.9 * (0.1 / 0.9) ** (t / 5) for t in range(6)])
    assert levels("exponential", 3) == pytest.approx([0.9, 0.4327, 0.208, 0.1], abs=1e-4)


def test_linear_to_the_printed_floor_has_the_printed_levels() -> None:
    assert levels("linear", 3, kappa=EvinceContentiousnessSettings(floor=0.3)) == pytest.approx([0.9, 0.7, 0.5, 0.3])


@given(SHARE, SHARE, st.integers(1, 50))
def test_exponential_cools_faster_than_linear_and_ends_where_it_does(one: float, other: float, rounds: int) -> None:
    kappa = EvinceContentiousnessSettings(start=max(one, other), floor=min(one, other))
    linear, exponential = (levels(name, rounds, kappa=kappa) for name in ("linear", "exponential"))
    assert exponential == sorted(exponential, key=lambda level: -not_none(level))
    assert exponential[-1] == pytest.approx(max(kappa.floor, min(kappa.start, NEAR_ZERO)))
    if kappa.floor >= NEAR_ZERO:
        assert all(not_none(e) <= not_none(ln) + 1e-9 for e, ln in zip(exponential, linear, strict=True))


def test_adaptive_is_constant_while_far_apart_and_cools_when_near() -> None:
    assert levels("adaptive", signals=FAR) == [0.9] * 6
    cooled = [level for level in levels("adaptive", signals=NEAR) if level is not None]
    assert cooled == sorted(cooled, reverse=True)
    assert cooled[-1] < 0.3


def test_adaptive_raises_when_the_sides_agree_on_not_knowing() -> None:
    lost = RoundSignals(0.3, 0.1, -0.5, 0.2, 0.95)
    assert lost.score > 0.5
    raised = next_level("adaptive", KAPPA, done=1, max_rounds=4, level=0.5, signals=lost)
    assert raised.level is not None
    assert raised.level > 0.5
    assert "not knowing" in raised.why
    certain = RoundSignals(0.3, 0.1, -0.5, 0.2, 0.2)
    assert next_level("adaptive", KAPPA, done=1, max_rounds=4, level=0.5, signals=certain).level == 0.5


@given(SIGNALS, st.floats(0.1, 0.9))
def test_adaptive_stays_within_its_bounds_and_says_why(signals: RoundSignals, level: float) -> None:
    found = next_level("adaptive", KAPPA, done=1, max_rounds=4, level=level, signals=signals)
    assert found.level is not None
    assert KAPPA.floor <= found.level <= KAPPA.start
    word = found.why.partition(":")[0]
    assert word == ("held" if found.level == level else "cooled" if found.level < level else "raised")


@given(SIGNALS)
def test_signals_are_shares(signals: RoundSignals) -> None:
    assert 0.0 <= signals.disagreement <= 1.0
    assert 0.0 <= signals.score <= 1.0


@given(SIGNALS, SHARE)
def test_better_arguments_never_heat_a_debate(signals: RoundSignals, better: float) -> None:
    if signals.quality is None or better < signals.quality:
        return
    improved = RoundSignals(signals.total_variation, signals.jensen_shannon, signals.gain, better, signals.uncertainty)

    def level(of: RoundSignals) -> float:
        found = next_level("adaptive", KAPPA, done=1, max_rounds=4, level=0.5, signals=of).level
        assert found is not None
        return found

    assert level(improved) <= level(signals) + 1e-12


class TestGate:
    QUALITY = QualityGateSettings(threshold=0.4, margin=0.1)

    @pytest.mark.parametrize(
        ("crit", "earlier", "bar", "passed"),
        [
            (0.4, [], 0.4, True),
            (0.39, [], 0.4, False),
            (0.6, [0.8, 0.8], 0.7, False),
            (0.75, [0.8, 0.8], 0.7, True),
            (0.3, [0.2], 0.4, False),
            (None, [0.9], 0.8, True),
        ],
        ids=["at the bar", "below", "the bar has risen", "above it", "it never falls", "unknown is not bad"],
    )
    def test_bar(self, crit: float | None, earlier: list[float], bar: float, passed: bool) -> None:
        found = quality_gate(crit, earlier, self.QUALITY, on=True)
        assert found.threshold == pytest.approx(bar)
        assert found.passed is passed

    def test_off_lets_everything_through(self) -> None:
        found = quality_gate(0.0, [1.0], self.QUALITY, on=False)
        assert (found.on, found.threshold, found.passed) == (False, None, True)


class TestSettings:
    def test_the_gate_needs_every_turn_read(self) -> None:
        with pytest.raises(ValueError, match="`gate` to off"):
            EvinceSettings(crit_turns="last")
        assert EvinceSettings(crit_turns="last", gate=False).judged
        assert not EvinceSettings(crit_turns="none", schedule="ensemble").judged

    def test_a_floor_above_the_start_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"kappa\.floor"):
            EvinceContentiousnessSettings(start=0.2, floor=0.5)

    def test_none_is_a_word(self) -> None:
        assert EvinceSettings.model_validate({"schedule": None}).schedule == "none"
