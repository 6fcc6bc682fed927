"""Which ask waited for which: read off times, and off the records of every kind of protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import moot
from moot.actors.floor import CaseFloor
from moot.actors.record.tables import read_table
from moot.deploy.planning.order import Timed, waits_for
from moot.deploy.planning.pilot import Debate
from moot.deploy.planning.programme import programme_of
from moot.deploy.planning.read import read_pilot
from moot.deploy.planning.scenario import Scenario
from moot.deploy.planning.simulate import simulate
from moot.deploy.running.run import run
from moot.protocols.messages import Answered, Ask

LATENCY_S = 0.03


def timed(path: str, began: float, ended: float) -> Timed:
    return Timed(path, began, began, ended)


def test_a_step_waits_for_all_replies_of_the_step_before_and_for_none_of_its_own() -> None:
    debate = [timed("a/0", 0, 1.0), timed("a/1", 0, 1.4), timed("a/2", 0, 1.2), timed("b", 1.41, 2), timed("c", 2, 3)]
    assert waits_for([debate]) == [[(), (), (), (0, 1, 2), (3,)]]


def test_chains_side_by_side_are_told_apart_by_any_debate_in_which_they_overlap() -> None:
    by_chance = [timed("x/1", 0, 1), timed("y/1", 0, 2), timed("x/2", 1, 3), timed("y/2", 2, 4)]
    alone = waits_for([by_chance])
    other = [timed("x/1", 0, 3), timed("y/1", 0, 1), timed("x/2", 3, 4), timed("y/2", 1, 2)]
    assert alone == [[(), (), (0,), (0, 1)]]  # y/2 was asked when x/1 had come: nothing tells that it was by chance
    assert waits_for([by_chance, other]) == [[(), (), (0,), (1,)], [(), (), (0,), (1,)]]


def test_a_clock_that_is_a_little_off_hides_no_dependency() -> None:
    ahead = [timed("a", 0, 1.0), timed("b", 0.98, 2.0)]
    together = [timed("a", 0.0, 1.0), timed("b", 0.02, 1.02)]
    assert waits_for([ahead]) == [[(), (0,)]]
    assert waits_for([together]) == [[(), ()]]


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 5)), max_size=12))
def test_nobody_waits_for_itself_and_there_is_no_circle(spans: list[tuple[float, float]]) -> None:
    asks = [timed(str(n), began, began + length) for n, (began, length) in enumerate(spans)]
    (order,) = waits_for([asks])
    for number, before in enumerate(order):
        for one in before:
            assert asks[one].ended_at <= asks[number].ended_at
            assert one != number
    seen: set[int] = set()
    while len(seen) < len(asks):
        free = {n for n, before in enumerate(order) if n not in seen and seen.issuperset(before)}
        assert free
        seen |= free


PROTOCOLS: dict[str, dict[str, Any]] = {
    "selene": {"protocol": "selene", "task": "sample", "limit": 8},
    "evince": {"protocol": "evince", "task": "sample-symptoms", "limit": 4},
    "socrasynth": {"protocol": "socrasynth", "task": "sample-subjects", "limit": 2},
    "ceda": {"protocol": "ceda", "task": "sample-claims", "limit": 6},
    "constructor-auditor": {"protocol": "constructor-auditor", "task": "sample-problems", "limit": 4},
    "judge-panel": {},
}

Order = dict[str, set[tuple[str, str]]]
"""By case, pairs of steps of which the first one's reply had come when the second was asked."""


Run = tuple[Path, Order]


@pytest.fixture(scope="module", params=PROTOCOLS)
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of each protocol, with what really came before what in it: noted by the floor, without a clock."""
    order: Order = {}
    pay = CaseFloor._pay

    async def noting(floor: CaseFloor, ask: Ask) -> Answered:
        known = order.setdefault(ask.case_id, set())
        known |= {(before, ask.path) for before in replied.setdefault(ask.case_id, set())}
        answered = await pay(floor, ask)
        replied[ask.case_id].add(ask.path)
        return answered

    replied: dict[str, set[str]] = {}
    out = tmp_path_factory.mktemp("planning") / str(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CaseFloor, "_pay", noting)
        hold(str(request.param), out)
    return out, order


def hold(name: str, out: Path) -> None:
    """A run of one kind of protocol, on a model that takes its time."""
    model = f"simulated?latency_ms={1000 * LATENCY_S:g}"
    if name == "judge-panel":
        moot.judge("sample-replies", judges=[model, f"{model}&judge_noise=0.4"], passes=2, out=out)
    else:
        run(engine="inline", out=out, model=model, **PROTOCOLS[name])


def paths_of(folder: Path, debate: Debate) -> list[str]:
    """The steps' paths, in their order."""
    rows = read_table(folder, "turns", ["at", "latency_s", "role"]).to_pylist()
    mine = [row for row in rows if row["case_id"] == debate.case_id and row["role"] != "person"]
    mine.sort(key=lambda row: row["at"] + row["latency_s"])
    return [row["path"] for row in mine]


def befores(debate: Debate, paths: list[str]) -> set[tuple[str, str]]:
    """Pairs of steps of which the second waits for the first, or for one that does."""
    found: list[set[int]] = []
    for step in debate.steps[: len(paths)]:
        found.append(set(step.after).union(*(found[before] for before in step.after)))
    return {(paths[before], paths[number]) for number, all_before in enumerate(found) for before in all_before}


def test_what_the_record_says_of_the_order_is_what_the_protocol_did(held: Run) -> None:
    folder, asked = held
    pilot = read_pilot(folder)
    steps = {debate.case_id: paths_of(folder, debate) for debate in pilot.debates}
    never = {
        (one, other)
        for case, paths in steps.items()
        for one in paths
        for other in paths
        if (one, other) not in asked.get(case, set())
    }
    for debate in pilot.debates:
        paths = steps[debate.case_id]
        assert "~" not in "".join(paths)
        always = asked.get(debate.case_id, set()) - never
        assert befores(debate, paths) == {pair for pair in always if set(pair) <= set(paths)}


def test_a_debate_that_is_simulated_alone_takes_as_long_as_it_took(held: Run) -> None:
    folder, _ = held
    pilot = read_pilot(folder)
    programme = programme_of(pilot)
    walls = {row["case_id"]: row["wall_s"] for row in read_table(folder, "verdicts", ["wall_s"]).to_pylist()}
    for number, debate in enumerate(pilot.debates):
        course = simulate(programme, [number], Scenario())
        assert course.time_s == pytest.approx(debate.alone_s, abs=1e-9)
        assert debate.alone_s == pytest.approx(walls[debate.case_id], abs=0.05)  # no call waited for leave
        assert all(step.busy_s >= 0.9 * LATENCY_S for step in debate.steps)
