"""Plans from made-up pilots: what binds, how long it takes, what it uses, and how sure that is."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from moot.actors.models.prices import Price
from moot.deploy.studies.planning.costs import BUSY_SHARE
from moot.deploy.studies.planning.pilot import Floats, Pilot, most_under_way
from moot.deploy.studies.planning.plan import RunPlan, plan_of
from moot.deploy.studies.planning.settings import PlanSettings, Scenario
from moot.deploy.studies.planning.show import show_plan
from moot.deploy.studies.planning.times import REFILL_S, seconds_by_bound, time_s

SERVER = "http://127.0.0.1:1/v1#made"
PRICE = Price(input=1.0, output=4.0)


def made(calls: Floats, alone: Floats, **others: Any) -> Pilot:
    """Debates of so many calls of a second each, 300 tokens in and 50 out, at a known price."""
    by_model = calls[:, None]
    known: dict[str, Any] = {
        "name": "runs/made", "protocol": "selene", "task": "sample", "engine": "ray", "placement": "packed",
        "max_open": 200, "models": (SERVER,), "prices": (PRICE,), "calls": calls, "requests": by_model,
        "tokens": 350.0 * by_model, "busy_s": by_model, "alone_s": alone, "prompt_tokens": 300.0 * calls,
        "completion_tokens": 50.0 * calls, "cost_usd": calls * PRICE.bound_usd(300, 50),
        "calls_without_usage": 0.0 * calls, "calls_without_price": 0.0 * calls, "unconfirmed_tokens": 0.0 * calls,
        "failed": np.arange(len(calls)) % 10 == 9,
        "skipped": calls == calls.min(), "log_probabilities": False, "simulated": False, "in_process": False,
        "sampled_from": len(calls), "unfinished": 0, "with_reused": 0, "later_attempts": 0, "shared": 0,
        "waits_unknown": 0, "interrupted": 0, "under_way": 200,
    }  # fmt: skip
    return Pilot(**known | others)


def usual(count: int = 60, seed: int = 3) -> Pilot:
    """Three openings at once, then none to three rounds."""
    draws = np.random.default_rng(seed)
    rounds = draws.integers(0, 4, count).astype(float)
    return made(3.0 + rounds, draws.uniform(0.8, 1.5, count) + rounds * draws.uniform(0.5, 2.5, count))


PILOT = usual()
BOUNDS = st.fixed_dictionaries(
    {
        "rpm": st.none() | st.integers(60, 6000),
        "tpm": st.none() | st.integers(30_000, 3_000_000),
        "concurrency": st.none() | st.integers(1, 60),
        "max_open": st.integers(1, 80),
        "cores": st.none() | st.floats(0.01, 4.0),
    }
)


def planned(**given_settings: float | str) -> RunPlan:
    return plan_of(PILOT, PlanSettings.model_validate(given_settings))


def _seconds(scenario: Scenario, cases: int) -> float:
    return float(time_s(PILOT, np.full((1, PILOT.debates), 1.0 / PILOT.debates), scenario, cases)[0])


@given(BOUNDS, st.integers(1, 100_000), st.sampled_from(["rpm", "tpm", "concurrency", "cpu", "max_open"]))
def test_no_run_is_quicker_than_any_bound_allows_or_than_without_it(bounds: Any, cases: int, without: Any) -> None:
    scenario = Scenario(**bounds, cpu_s=0.002)
    weights = np.full((1, PILOT.debates), 1.0 / PILOT.debates)
    alone = seconds_by_bound(PILOT, weights, scenario, cases)
    assert _seconds(scenario, cases) >= max(float(each[0]) for each in alone.values()) * (1.0 - 1e-9)
    assert _seconds(scenario.without(without), cases) <= _seconds(scenario, cases) * (1.0 + 1e-9)


def test_each_bound_alone_takes_what_it_lets_through() -> None:
    weights, cases = np.full((1, PILOT.debates), 1.0 / PILOT.debates), 6_000
    calls = float(PILOT.calls.sum()) * 100
    scenario = Scenario(rpm=600, tpm=100_000, concurrency=20, max_open=50, cores=0.5, cpu_s=0.01)
    found = {name: float(each[0]) for name, each in seconds_by_bound(PILOT, weights, scenario, cases).items()}
    assert found["rpm"] == pytest.approx(calls * REFILL_S / 600)
    assert found["tpm"] == pytest.approx(350 * calls * REFILL_S / 100_000)
    assert found["concurrency"] == pytest.approx(calls / 20)
    assert found["cpu"] == pytest.approx(calls * 0.01 / 0.5)
    assert found["max_open"] == pytest.approx(PILOT.alone_s.sum() * 100 / 50)
    assert found["latency"] == pytest.approx(PILOT.alone_s.max(), rel=1e-3)
    assert float(seconds_by_bound(PILOT, weights, scenario, 1)["latency"][0]) == pytest.approx(PILOT.alone_s.mean())


@pytest.mark.parametrize("places", [1, 40])
def test_with_places_bound_a_run_takes_as_long_as_debates_one_after_another(places: int) -> None:
    """Compared with running the debates in order, each in the first free slot."""
    random, cases, runs = np.random.default_rng(0), 300, []
    for _ in range(40):
        free = np.zeros(places)
        for debate in random.choice(PILOT.debates, cases):
            free[free.argmin()] += PILOT.alone_s[debate]
        runs.append(free.max())
    assert _seconds(Scenario(max_open=places), cases) == pytest.approx(np.mean(runs), rel=0.15)


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("max_open", {"max_open": 40}),
        ("rpm", {"limit_rpm": 3000}),
        ("tpm", {"limit_tpm": 1_000_000}),
        ("concurrency", {"concurrency": 30}),
        ("cpu", {"nodes": 1, "cores_per_node": 1, "cpu_ms_per_call": 40.0}),
    ],
)
def test_what_binds_is_named_and_without_it_the_run_is_quicker(name: str, flags: dict[str, float]) -> None:
    found = planned(cases=20_000, **flags)
    assert found.binding == name
    assert found.relaxed_s is not None
    assert found.relaxed_s < 0.9 * found.time_s.value
    assert found.then_binding not in (None, name)
    assert found.time_s.low <= found.time_s.value <= found.time_s.high
    wide = {key: value * (1 if key in ("nodes", "cpu_ms_per_call") else 100) for key, value in flags.items()}
    large = planned(cases=2_000_000, **{"max_open": 20_000} | wide)
    assert large.time_s.value == pytest.approx(found.time_s.value, rel=0.06), "a hundred times of all takes as long"


def test_where_processors_bind_a_run_needs_those_that_it_has() -> None:
    found = planned(cases=60_000, nodes=1, cores_per_node=3, cpu_ms_per_call=40.0, max_open=10**6)
    assert found.binding == "cpu"
    assert found.cores_at_hand == found.needs.cores == found.needs_high.cores == 3
    assert found.time_s.value == pytest.approx(found.totals.calls.value * 0.040 / 3 / BUSY_SHARE, rel=0.02)


def test_a_run_without_limits_is_bound_by_latency_alone() -> None:
    found = planned(cases=20, max_open=20, concurrency=100)
    assert (found.binding, found.relaxed_s, found.then_binding) == ("latency", None, None)


@pytest.mark.parametrize("bound", [{}, {"concurrency": 70}, {"limit_rpm": 3000}])
def test_no_more_debates_are_open_and_calls_under_way_than_may_be(bound: dict[str, int]) -> None:
    found = planned(cases=100_000, max_open=200, **bound)
    assert 0.0 < found.open_debates.low <= found.open_debates.high <= 200.0
    assert found.in_flight.high <= bound.get("concurrency", float("inf"))


def test_a_plan_is_the_same_for_the_same_seed() -> None:
    def ends(seed: int) -> Any:
        found = plan_of(PILOT, PlanSettings(cases=500, limit_rpm=3000, seed=seed))
        return found.time_s, found.totals.calls

    assert ends(4) == ends(4) != ends(5)
    assert ends(4)[1].value == ends(5)[1].value


def test_totals_are_those_of_the_pilot_in_proportion() -> None:
    found = planned(cases=6_000)
    assert found.totals.calls.value == pytest.approx(100 * PILOT.calls.sum())
    assert found.totals.cost_usd is not None
    assert found.totals.cost_usd.value == pytest.approx(100 * PILOT.calls.sum() * (300 * 1.0 + 50 * 4.0) / 1e6)
    assert found.totals.failed.value == pytest.approx(600)
    for name in ("calls", "prompt_tokens", "cost_usd", "failed", "skipped"):
        each = getattr(found.totals, name)
        assert each.low < each.value < each.high


@pytest.mark.parametrize("flags", [{}, {"limit_rpm": 3000}])
def test_intervals_cover_what_other_draws_of_the_same_kind_take(flags: dict[str, int]) -> None:
    """Nine in ten of the pilots that could have been made hold the truth inside; less than three in four would be a
    bug, for 60 debates are few."""
    wanted = PlanSettings.model_validate({"cases": 100_000, **flags})
    truth = plan_of(usual(1_000, seed=99), wanted)
    found = [plan_of(usual(60, seed=seed), wanted) for seed in range(24)]
    for true, seen in (
        (truth.totals.calls.value, [each.totals.calls for each in found]),
        (truth.time_s.value, [each.time_s for each in found]),
    ):
        assert sum(each.low <= true <= each.high for each in seen) >= 18


def test_a_small_pilot_has_wide_intervals_and_says_so() -> None:
    widths = []
    for pilot, is_small in ((usual(8), True), (usual(200), False)):
        found = plan_of(pilot, PlanSettings(cases=5_000, max_open=20))
        widths.append((found.time_s.high - found.time_s.low) / found.time_s.value)
        assert any("only 8 debates" in remark for remark in found.remarks) == is_small
    assert widths[0] > 2 * widths[1]


def test_a_little_is_not_shown_as_nothing() -> None:
    console = Console(width=200, record=True, file=StringIO())
    show_plan(planned(cases=50, max_open=1, limit_rpm=6, nodes=1, cores_per_node=1), console=console)
    shown = console.export_text()
    assert "concurrent calls adapt, 1 core\n" in re.sub(" +\n", "\n", shown)
    (line,) = [line for line in shown.splitlines() if line.startswith("calls in flight")]
    assert re.search(r" 0\.\d+ \[0\.\d+ to 0\.\d+\] on average", line), line


def test_what_is_not_known_is_not_nothing() -> None:
    calls = PILOT.calls
    unpriced = plan_of(
        replace(PILOT, prices=(None,), calls_without_price=calls, cost_usd=0.0 * calls), PlanSettings(cases=100)
    )
    assert unpriced.totals.cost_usd is None
    found = plan_of(replace(PILOT, calls_without_usage=calls / 2), PlanSettings(cases=100, limit_tpm=10_000))
    assert found.totals.calls_without_usage == 0.5
    assert any("tokens are a lower bound" in remark for remark in found.remarks)
    assert any("cost is a lower bound" in remark for remark in found.remarks)


@pytest.mark.parametrize("failed", [0, 3, 7, 30])
def test_a_pilot_of_which_much_failed_is_warned_of_first(failed: int) -> None:
    pilot = made(np.ones(30), np.ones(30), failed=np.arange(30) < failed)
    warnings = plan_of(pilot, PlanSettings(cases=100)).warnings
    assert any(f"{failed} of the pilot's 30 debates failed" in each for each in warnings[:1]) == (failed >= 6)


def test_debates_without_calls_are_cases_too() -> None:
    pilot = made(np.zeros(30), np.zeros(30), failed=np.ones(30, bool))
    found = plan_of(pilot, PlanSettings(cases=1_000_000, limit_rpm=60))
    assert (found.totals.calls.value, found.totals.failed.value, found.time_s.value) == (0, 1_000_000, 0.0)


@pytest.mark.parametrize(("settings", "warned"), [({}, True), ({"concurrency": 5}, False), ({"limit_rpm": 60}, False)])
def test_more_calls_than_the_pilot_had_under_way_are_warned_of_on_top(settings: dict[str, Any], warned: bool) -> None:
    found = plan_of(replace(PILOT, under_way=5), PlanSettings(cases=500, **settings))
    assert bool(found.warnings) == warned
    console = Console(width=500, record=True, file=StringIO())
    show_plan(found, console=console)
    assert console.export_text().startswith("warning: ") == warned
    if warned:
        assert "--concurrency 5" in found.warnings[0]
    alone = replace(PILOT, under_way=5, in_process=True)
    assert plan_of(alone, PlanSettings(cases=500)).warnings == (), "it shows no server"


def test_calls_that_wait_for_leave_are_not_under_way() -> None:
    def row(path: str, at: float, latency_s: float | None, waited_s: float = 0.0) -> dict[str, object]:
        return {"case_id": "a", "path": path, "at": at, "latency_s": latency_s, "waited_s": waited_s}

    asked_again = [row("x", 0.0, 1.0), row("x~1", 0.0, 2.0)]
    assert most_under_way(asked_again) == 1
    assert most_under_way([*asked_again, row("y", 0.5, 4.0, waited_s=1.5), row("z", 9.0, None)]) == 1
    assert most_under_way([*asked_again, row("y", 0.5, 4.0, waited_s=1.2)]) == 2
    assert most_under_way([]) == 0
