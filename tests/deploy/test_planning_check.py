"""Plans held against real runs of a hundredth of the size, within 15 %; `tests/bench/plan_check.py` prints the table.

A plan says how long a run takes if its server answers as it did in the pilot. The server is `moot simulate` in this
process: where others use the machine so much that calls took longer than it says, the time is held only against the
simulation that goes by the run's own record, which knows how long its calls took.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from plan_regimes import LATENCY, PILOT, REGIMES, Held, hold, rows_file, scaled, server, simulated_again

from moot.deploy.planning.plan import plan

BAR = 0.15
CASES = 60
SERVER_S = (LATENCY["latency_ms"] + LATENCY["jitter_ms"] / 2) / 1000.0
IN_TIME = 0.1


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with server() as name:
        yield name


@pytest.fixture(scope="module")
def pilot(model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Held]:
    """A run of 100 cases, few at once. Its debates are about as long as those of the runs that are planned: how far a
    draw can be off is what the intervals say."""
    folder = tmp_path_factory.mktemp("planning")
    held = hold(folder / "pilot", model, rows_file(folder / "pilot.jsonl", 20_000, 100), PILOT)
    return folder / "pilot", held


@pytest.mark.parametrize("regime", ["max_open", "rpm", "concurrency"])
def test_a_run_takes_what_was_planned(regime: str, pilot: tuple[Path, Held], model: str, tmp_path: Path) -> None:
    bounds, (folder, measured) = REGIMES[regime], pilot
    planned = plan(folder, cases=CASES, **bounds)
    large = plan(folder, cases=100 * CASES, **scaled(bounds, 100))
    held = hold(tmp_path / regime, model, rows_file(tmp_path / "rows.jsonl", 10_000, CASES), bounds)
    assert planned.binding == regime
    assert held.calls == pytest.approx(planned.totals.calls.value, rel=BAR)
    assert held.prompt_tokens == pytest.approx(planned.totals.prompt_tokens.value, rel=BAR)
    assert held.completion_tokens == pytest.approx(planned.totals.completion_tokens.value, rel=BAR)
    if all(abs(each.busy_s - SERVER_S) <= IN_TIME * SERVER_S for each in (measured, held)):
        assert held.time_s == pytest.approx(planned.time_s.value, rel=BAR)
    # A hundred times as much of everything takes as long: this run stands for the large one.
    assert large.time_s.value == pytest.approx(planned.time_s.value, rel=BAR)
    assert 100 * held.calls == pytest.approx(large.totals.calls.value, rel=BAR)
    # And going by its own record nothing is left to chance: what is off is the simulation.
    assert simulated_again(tmp_path / regime, bounds) == pytest.approx(held.time_s, rel=0.05)
