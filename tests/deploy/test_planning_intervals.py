"""Intervals of a plan hold what they say: neither less nor much more."""

from __future__ import annotations

import json

import numpy as np
import pytest
from made_pilots import debate, made, step
from rich.console import Console

from moot.actors.limits.settings import PERMIT_TTL_S, WINDOW_S
from moot.deploy.planning.pilot import Pilot
from moot.deploy.planning.plan import plan_of
from moot.deploy.planning.programme import programme_of
from moot.deploy.planning.resampled import RESAMPLES, ends, resampled
from moot.deploy.planning.scenario import Scenario
from moot.deploy.planning.settings import PlanSettings
from moot.deploy.planning.show import show_plan
from moot.deploy.planning.steady import forecast
from moot.deploy.planning.totals import LEVEL

SHARES = {1: 0.5, 2: 0.25, 4: 0.15, 6: 0.1}
"""Of the debates by their number of calls, which come one after another."""

PILOTS = 30

CALLS = sum(calls * share for calls, share in SHARES.items())


def pilot(count: int, seed: int) -> Pilot:
    """Each debate has a speed of its own."""
    random = np.random.default_rng(seed)
    busy_s = random.uniform(0.5, 1.5, count)
    lengths = random.choice(list(SHARES), size=count, p=list(SHARES.values()))
    debates = [
        debate(n, tuple(step((k - 1,) if k else (), busy_s[n]) for k in range(length)))
        for n, length in enumerate(lengths)
    ]
    return made(tuple(debates))


def test_the_ends_hold_one_more_draw_nine_times_in_ten() -> None:
    random = np.random.default_rng(0)
    for count in (19, RESAMPLES):
        draws, more = random.standard_normal((4_000, count)), random.standard_normal(4_000)
        inside = [low <= one <= high for (low, high), one in zip(map(ends, draws), more, strict=True)]
        assert abs(np.mean(inside) - LEVEL) < 0.015


def test_nine_in_ten_pilots_hold_the_true_time() -> None:
    scenario, cases = Scenario(rpm=6_000, concurrency=2_000, max_open=300), 100_000
    true_s = CALLS * cases * (WINDOW_S + PERMIT_TTL_S) / 6_000
    inside = 0
    for seed in range(PILOTS):
        programme, random = programme_of(pilot(60, seed)), np.random.default_rng(seed)
        seen = forecast(programme, np.arange(60), scenario, cases, 400, random)
        others = resampled(programme, scenario, cases, random, resamples=19, most_calls=200)
        time_s = others.around(seen.time_s, others.time_s)
        inside += time_s.low <= true_s <= time_s.high
    assert 0.82 * PILOTS <= inside <= 0.97 * PILOTS


def test_an_interval_narrows_with_the_pilot_and_widens_for_few_cases() -> None:
    """As means do, by how many debates and how many cases there are."""

    def width(count: int, cases: int) -> float:
        scenario, random = Scenario(rpm=60 * cases // 100, concurrency=cases, max_open=cases), np.random.default_rng(1)
        others = resampled(programme_of(pilot(count, 5)), scenario, cases, random, resamples=39)
        low, _, high = sorted(others.around(1.0, others.time_s))
        return high - low

    spread = np.sqrt(sum(calls**2 * share for calls, share in SHARES.items()) - CALLS**2) / CALLS
    for count, cases in ((60, 100_000), (600, 100_000), (600, 600)):
        expected = 2 * 1.645 * spread * np.sqrt(1 / count + 1 / cases)
        assert 0.6 * expected <= width(count, cases) <= 1.5 * expected, (count, cases)


def test_all_that_is_simulated_has_an_interval_and_is_shown_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = PlanSettings(cases=50_000, max_open=2_000, concurrency=10_000, cpu_ms_per_call=20.0)
    found = plan_of(pilot(60, 1), wanted)
    for each in (found.time_s, *found.in_flight, found.open_debates[0]):
        assert each.low <= each.value <= each.high
    assert found.in_flight[0].low < found.in_flight[0].value < found.in_flight[0].high
    assert found.needs_low.cores <= found.needs.cores <= found.needs_high.cores
    assert found.needs_low.cores < found.needs_high.cores
    assert found.needs_low.memory_mb < found.needs.memory_mb < found.needs_high.memory_mb
    console = Console(width=200)
    with console.capture() as text:
        show_plan(found, console=console)
    assert f"{found.needs.cores} [{found.needs_low.cores} to {found.needs_high.cores}] cores" in text.get()
    show_plan(found, "json")
    shown = json.loads(capsys.readouterr().out)
    low, high = shown["in_flight"]["mean"]["interval"]
    assert (low, high) == (found.in_flight[0].low, found.in_flight[0].high)
    assert shown["needs"]["moderators"]["interval"] == [found.needs_low.moderators, found.needs_high.moderators]
    assert shown["open_debates"]["p95"]["value"] == found.open_debates[1].value
