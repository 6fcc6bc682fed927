"""What must hold of every plan: of the simulation, of the bounds, of the totals, and of what is said of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_pilots import debate, made, short_plans, step, usual
from rich.console import Console

from moot.actors.limits.settings import PERMIT_TTL_S, WINDOW_S
from moot.actors.models.prices import Price
from moot.deploy.planning.bounds import alone_s
from moot.deploy.planning.costs import BUSY_SHARE
from moot.deploy.planning.debates import most_under_way
from moot.deploy.planning.plan import RunPlan, plan_of
from moot.deploy.planning.programme import programme_of
from moot.deploy.planning.scenario import Scenario
from moot.deploy.planning.settings import PlanSettings
from moot.deploy.planning.show import show_plan
from moot.deploy.planning.simulate import simulate
from moot.deploy.planning.steady import forecast
from moot.deploy.planning.totals import totals

PILOT = usual()
PROGRAMME = programme_of(PILOT)
EVERYONE = np.arange(len(PILOT.debates))
FREE = Scenario(max_open=50, adapts=False)

ORDERS = st.lists(st.integers(0, len(PILOT.debates) - 1), min_size=1, max_size=120)
BOUNDS = st.fixed_dictionaries(
    {
        "rpm": st.none() | st.integers(60, 6000),
        "tpm": st.none() | st.integers(30_000, 3_000_000),
        "concurrency": st.none() | st.integers(1, 60),
        "max_open": st.integers(1, 80),
        "cores": st.none() | st.floats(0.01, 4.0),
    }
)


@pytest.fixture(scope="module", autouse=True)
def _short() -> Iterator[None]:
    with short_plans():
        yield


def planned(**given_settings: int | float | str) -> RunPlan:
    return plan_of(PILOT, PlanSettings.model_validate(given_settings))


@given(ORDERS, BOUNDS)
def test_no_run_is_quicker_than_its_longest_debate_or_than_any_bound_allows(
    order: list[int], bounds: dict[str, float | None]
) -> None:
    scenario = Scenario(**bounds, cpu_s=0.002, adapts=False)  # type: ignore[arg-type]
    course = simulate(PROGRAMME, order, scenario)
    assert course.time_s >= max(PILOT.debates[n].alone_s for n in order) - 1e-9
    requests, tokens = PROGRAMME.requests[order].sum(), PROGRAMME.tokens[order].sum()
    most_at_once = PROGRAMME.tokens[order].max() + 1000.0
    for limit, used, burst in ((scenario.rpm, requests, 1.0), (scenario.tpm, tokens, most_at_once)):
        if limit is not None:
            per_s = limit / (WINDOW_S + PERMIT_TTL_S)
            assert course.time_s >= (used - burst) / per_s - 1.0 - 1e-6
    if scenario.concurrency is not None:
        assert course.time_s >= PROGRAMME.busy_s[order].sum() / scenario.concurrency - 1e-6
        assert course.in_flight[1] <= scenario.concurrency
    if scenario.cores is not None:
        assert course.time_s >= PROGRAMME.calls[order].sum() * scenario.cpu_s / scenario.cores - 1e-6
    assert course.open_debates[1] <= scenario.max_open


@given(ORDERS)
def test_without_bounds_a_run_takes_as_long_as_its_longest_debate(order: list[int]) -> None:
    course = simulate(PROGRAMME, order, Scenario(max_open=len(order), adapts=False))
    assert course.time_s == pytest.approx(max(PILOT.debates[n].alone_s for n in order))


@given(ORDERS, st.sampled_from(["rpm", "tpm", "concurrency", "cores"]), st.data())
def test_wider_bounds_never_make_a_run_slower(order: list[int], name: str, data: st.DataObject) -> None:
    """First come, first served can be a little slower with more room, by the order in which debates end (Graham's
    anomalies), but never by more than the longest debate takes."""
    narrow = {"rpm": 600, "tpm": 200_000, "concurrency": 6, "cores": 0.05}[name]
    wide = narrow * data.draw(st.floats(1.0, 20.0))

    def times(places: int, cases: list[int]) -> list[float]:
        bounds: list[dict[str, Any]] = [{name: each if name == "cores" else int(each)} for each in (narrow, wide)]
        scenarios = [replace(FREE, max_open=places, cpu_s=0.01, **each) for each in bounds]
        return [simulate(PROGRAMME, cases, scenario).time_s for scenario in scenarios]

    narrow_s, wide_s = times(50, order)
    assert wide_s <= narrow_s + max(PILOT.debates[n].alone_s for n in order)
    # With one debate at a time there is next to no order to depend on.
    narrow_s, wide_s = times(1, order[:20])
    assert wide_s <= narrow_s + 1e-6


@pytest.mark.parametrize("rpm", [300, 6000])
def test_with_requests_bound_the_time_nears_requests_over_rate(rpm: int) -> None:
    order = EVERYONE.tolist() * 30
    requests = PROGRAMME.requests[order].sum()
    course = simulate(PROGRAMME, order, Scenario(rpm=rpm, max_open=400, adapts=False))
    bound = requests * (WINDOW_S + PERMIT_TTL_S) / rpm
    assert bound - 1.0 <= course.time_s <= bound + PROGRAMME.alone_s.max()


def test_tokens_are_counted_as_used_and_not_as_reserved() -> None:
    order = EVERYONE.tolist() * 10
    course = simulate(PROGRAMME, order, Scenario(tpm=500_000, max_open=400, adapts=False))
    used = PROGRAMME.tokens[order].sum()
    assert course.time_s == pytest.approx(used * (WINDOW_S + PERMIT_TTL_S) / 500_000, rel=0.05)


SCENARIOS = {
    "max_open": Scenario(max_open=40),
    "rpm": Scenario(rpm=3000, max_open=200),
    "tpm": Scenario(tpm=2_000_000, max_open=200),
    "concurrency": Scenario(concurrency=30, max_open=200),
    "cpu": Scenario(cores=0.05, cpu_s=0.001, max_open=200),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_part_that_is_simulated_stands_for_the_whole(name: str) -> None:
    cases, scenario = 6_000, SCENARIOS[name]
    whole = forecast(PROGRAMME, EVERYONE, scenario, cases, 10**9, np.random.default_rng(1))
    part = forecast(PROGRAMME, EVERYONE, scenario, cases, 8_000, np.random.default_rng(2))
    assert whole.simulated == cases
    assert part.simulated <= cases / 3
    assert part.time_s == pytest.approx(whole.time_s, rel=0.04)
    assert part.in_flight[0] == pytest.approx(whole.in_flight[0], rel=0.06)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_hundred_times_the_cases_under_a_hundred_times_the_bounds_takes_as_long(name: str) -> None:
    scenario = replace(SCENARIOS[name], concurrency=SCENARIOS[name].concurrency or 1000)
    wide = replace(
        scenario,
        rpm=scenario.rpm and 100 * scenario.rpm,
        tpm=scenario.tpm and 100 * scenario.tpm,
        concurrency=100 * (scenario.concurrency or 0),
        max_open=100 * scenario.max_open,
        cores=scenario.cores and 100 * scenario.cores,
    )
    small = forecast(PROGRAMME, EVERYONE, scenario, 1_500, 10**9, np.random.default_rng(1))
    large = forecast(PROGRAMME, EVERYONE, wide, 150_000, 20_000, np.random.default_rng(2))
    assert large.simulated < 10_000
    assert large.time_s == pytest.approx(small.time_s, rel=0.06)


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_binds_is_named_and_without_it_the_run_is_quicker(name: str) -> None:
    flags: dict[str, dict[str, float]] = {
        "max_open": {"max_open": 40},
        "rpm": {"limit_rpm": 3000},
        "tpm": {"limit_tpm": 2_000_000},
        "concurrency": {"concurrency": 30},
        "cpu": {"nodes": 1, "cores_per_node": 1, "cpu_ms_per_call": 20.0},
    }
    found = planned(cases=20_000, **flags[name])
    assert found.binding == name
    assert found.relaxed_s is not None
    assert found.relaxed_s < 0.9 * found.time_s.value
    assert found.then_binding not in (None, name)
    assert found.time_s.value >= 0.99 * found.alone_s[found.binding]
    assert found.time_s.low <= found.time_s.value <= found.time_s.high


@pytest.mark.parametrize("cores", [1, 3, 96])
def test_where_processors_bind_a_run_needs_those_that_it_has(cores: int) -> None:
    found = planned(cases=20_000 * cores, nodes=1, cores_per_node=cores, cpu_ms_per_call=40.0, max_open=10**6)
    assert found.binding == "cpu"
    assert found.cores_at_hand == found.needs.cores == found.needs_high.cores == cores
    busy_s = found.totals.calls.value * 0.040 / cores
    assert found.time_s.value == pytest.approx(busy_s / BUSY_SHARE, rel=0.02)


def test_a_run_that_nothing_holds_back_is_bound_by_latency_alone() -> None:
    found = planned(cases=20, max_open=20, concurrency=100)
    assert (found.binding, found.relaxed_s, found.then_binding) == ("latency", None, None)


@pytest.mark.parametrize("bound", [{}, {"concurrency": 70}, {"limit_rpm": 3000}])
def test_no_more_debates_are_open_than_may_be(bound: dict[str, int]) -> None:
    """Nor calls under way: of a part that is simulated, too, whose bounds are no round numbers."""
    found = planned(cases=100_000, max_open=200, **bound)
    assert all(0.0 < each.low <= each.high <= 200.0 for each in found.open_debates)
    assert all(each.high <= bound.get("concurrency", float("inf")) for each in found.in_flight)


def test_a_start_from_few_calls_that_adapts_is_named_where_it_costs_most() -> None:
    found = planned(cases=2_000, max_open=2_000)
    assert found.binding == "concurrency"
    assert found.relaxed_s is not None
    assert found.relaxed_s < 0.9 * found.time_s.value


def test_a_plan_is_the_same_for_the_same_seed() -> None:
    wanted = PlanSettings(cases=500, limit_rpm=3000, seed=4)
    first, again = plan_of(PILOT, wanted), plan_of(PILOT, wanted)
    assert first == again
    other = plan_of(PILOT, PlanSettings(cases=500, limit_rpm=3000, seed=5))
    assert other.time_s != first.time_s
    assert other.totals.calls.value == first.totals.calls.value


def test_totals_are_those_of_the_pilot_in_proportion() -> None:
    used = planned(cases=6_000).totals
    steps = [each for one in PILOT.debates for each in one.steps]
    assert used.calls.value == pytest.approx(100 * len(steps))
    assert used.prompt_tokens.value == pytest.approx(100 * sum(each.prompt or 0 for each in steps))
    assert used.cost_usd is not None
    cost = sum((each.prompt or 0) * 1.0 + (each.completion or 0) * 4.0 for each in steps) / 1e6
    assert used.cost_usd.value == pytest.approx(100 * cost)
    assert used.failed.value == pytest.approx(600)
    for each in (used.calls, used.prompt_tokens, used.cost_usd, used.failed, used.skipped):
        assert each.low < each.value < each.high


def test_intervals_cover_what_other_draws_of_the_same_kind_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine in ten of the pilots that could have been made hold the truth inside; less than three in four would be a
    bug, for 60 debates are few."""
    monkeypatch.setattr("moot.deploy.planning.totals._RESAMPLES", 300)
    true = np.mean([len(each.steps) for each in usual(3_000, seed=99).debates])
    found = [totals(usual(60, seed=seed), 1_000_000, np.random.default_rng(0)).calls for seed in range(40)]
    assert sum(each.low <= 1e6 * true <= each.high for each in found) >= 30


def test_a_small_pilot_has_wide_intervals_and_says_so() -> None:
    small, large = made(PILOT.debates[:8], PILOT.prices[0]), usual(200)
    wanted = PlanSettings(cases=5_000, max_open=20)
    widths = []
    for pilot in (small, large):
        found = plan_of(pilot, wanted)
        widths.append((found.time_s.high - found.time_s.low) / found.time_s.value)
        assert any("only 8 debates" in remark for remark in found.remarks) == (pilot is small)
    assert widths[0] > 2 * widths[1]


def test_a_little_is_not_shown_as_nothing() -> None:
    console = Console(width=200, record=True, file=StringIO())
    show_plan(planned(cases=50, max_open=1, limit_rpm=6, nodes=1, cores_per_node=1), console=console)
    assert "calls under way adapt, 1 core\n" in re.sub(" +\n", "\n", console.export_text(clear=False))
    (line,) = [line for line in console.export_text().splitlines() if line.startswith("calls in flight")]
    assert re.search(r" 0\.\d+ \[0\.\d+ to 0\.\d+\] on average", line), line


def test_what_is_not_known_is_not_nothing() -> None:
    unpriced = plan_of(made(PILOT.debates), PlanSettings(cases=100))
    assert unpriced.totals.cost_usd is None
    untold = (debate(0, (step(), step((0,), prompt=None, completion=None))),) * 30
    found = plan_of(made(untold, Price(input=1.0, output=1.0)), PlanSettings(cases=100, limit_tpm=10_000))
    assert found.totals.calls_without_usage == 0.5
    assert any("tokens are a lower bound" in remark for remark in found.remarks)
    assert any("cost is a lower bound" in remark for remark in found.remarks)
    reserved = 100 * (250 + 600)  # the limiter keeps what was set aside for the call that said nothing
    assert found.alone_s["tpm"] == pytest.approx(reserved * 61 / 10_000)


@pytest.mark.parametrize("failed", [0, 3, 7, 30])
def test_a_pilot_of_which_much_failed_is_warned_of_first(failed: int) -> None:
    debates = tuple(debate(n, (step(),), failed=n < failed) for n in range(30))
    warnings = plan_of(made(debates), PlanSettings(cases=100)).warnings
    assert any(f"{failed} of the pilot's 30 debates failed" in each for each in warnings[:1]) == (failed >= 6)


def test_debates_without_calls_are_cases_too() -> None:
    invalid = tuple(debate(n, (), failed=True) for n in range(30))
    found = plan_of(made(invalid), PlanSettings(cases=1_000_000, limit_rpm=60))
    assert found.totals.calls.value == 0
    assert found.totals.failed.value == 1_000_000
    assert found.time_s.value == 0.0


def test_the_longest_of_many_debates_is_the_bound_of_latency() -> None:
    few = alone_s(PROGRAMME, EVERYONE, FREE, 1)["latency"]
    many = alone_s(PROGRAMME, EVERYONE, FREE, 10_000)["latency"]
    assert few == pytest.approx(np.mean([each.alone_s for each in PILOT.debates]))
    assert many == pytest.approx(max(each.alone_s for each in PILOT.debates))


@pytest.mark.parametrize(("settings", "warned"), [({}, True), ({"concurrency": 5}, False), ({"limit_rpm": 60}, False)])
def test_more_calls_than_the_pilot_had_under_way_are_warned_of_on_top(settings: dict[str, Any], warned: bool) -> None:
    pilot = made(PILOT.debates, PILOT.prices[0], under_way=5)
    found = plan_of(pilot, PlanSettings(cases=500, **settings))
    assert bool(found.warnings) == warned == (found.in_flight[1].value > 5)
    console = Console(width=500, record=True, file=StringIO())
    show_plan(found, console=console)
    assert console.export_text().startswith("warning: ") == warned
    if warned:
        assert "--concurrency 5" in found.warnings[0]


def test_a_pilot_in_the_own_processes_shows_no_server() -> None:
    pilot = replace(made(PILOT.debates, PILOT.prices[0], under_way=5), in_process=True)
    assert plan_of(pilot, PlanSettings(cases=500)).warnings == ()


def test_calls_that_wait_for_leave_are_not_under_way() -> None:
    def row(path: str, at: float, latency_s: float | None, waited_s: float = 0.0) -> dict[str, object]:
        return {"case_id": "a", "path": path, "at": at, "latency_s": latency_s, "waited_s": waited_s}

    asked_again = [row("x", 0.0, 1.0), row("x~1", 0.0, 2.0)]
    assert most_under_way(asked_again) == 1
    assert most_under_way([*asked_again, row("y", 0.5, 4.0, waited_s=1.5), row("z", 9.0, None)]) == 1
    assert most_under_way([*asked_again, row("y", 0.5, 4.0, waited_s=1.2)]) == 2
    assert most_under_way([]) == 0
