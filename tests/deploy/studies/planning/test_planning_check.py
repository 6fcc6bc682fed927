"""Plans held against real runs of a hundredth of the size; `tests/bench/plan_check.py` prints the table (bar: 15 %).

A plan says how long a run takes if its server answers as it did in the pilot. Here it is held against `moot simulate`
in this process on a machine that others may use meanwhile: so the plan is made from the pilot with its calls as slow as
they were in the run, and everything else in it - what the cases use, which call waits for which, what binds and how the
bounds let calls through - as the pilot says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from plan_regimes import PILOT, REGIMES, plan_as_slow, rows_file, run_and_measure, scaled, server

BAR, TIME_BAR = 0.15, 0.25
"""Of counts, and of seconds: other tests run beside, and a run is held up by them as its plan is not."""
CASES, FIRST = 60, 14_000
"""Of the rows that are planned: their debates have as many calls and tokens as the pilot's, within 1 %. How far a draw
can be off is what the intervals say, and not what is held here."""


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with server() as name:
        yield name


@pytest.fixture(scope="module")
def pilot(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 100 cases, few at once."""
    folder = tmp_path_factory.mktemp("planning")
    run_and_measure(folder / "pilot", model, rows_file(folder / "pilot.jsonl", 20_000, 100), PILOT)
    return folder / "pilot"


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES)
def test_a_run_takes_what_was_planned(regime: str, pilot: Path, model: str, tmp_path: Path) -> None:
    bounds, out = REGIMES[regime], tmp_path / regime
    held = run_and_measure(out, model, rows_file(tmp_path / "rows.jsonl", FIRST, CASES), bounds)
    planned = plan_as_slow(pilot, out, cases=CASES, **bounds)
    # A hundred times as much of everything takes as long: this run stands for the large one.
    large = plan_as_slow(pilot, out, cases=100 * CASES, **scaled(bounds, 100))
    assert planned.binding == regime
    for each, by in ((planned, 1), (large, 100)):
        assert held.time_s == pytest.approx(each.time_s.value, rel=TIME_BAR)
        assert by * held.calls == pytest.approx(each.totals.calls.value, rel=BAR)
        assert by * held.prompt_tokens == pytest.approx(each.totals.prompt_tokens.value, rel=BAR)
        assert by * held.completion_tokens == pytest.approx(each.totals.completion_tokens.value, rel=BAR)
