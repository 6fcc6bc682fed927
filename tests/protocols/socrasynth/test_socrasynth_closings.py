"""Level of the closing statements: the panel judges opponents, and only the joint proposal is conciliatory."""

from __future__ import annotations

from typing import Any

import pytest
from socrasynth_script import run_scripted

from moot.protocols.messages import Decision


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({"max_rounds": 5}, 0.9),
        ({"max_rounds": 0}, 0.9),
        ({"schedule": "three-phase"}, 0.9),
        ({"schedule": "fixed", "max_rounds": 1}, 0.9),
        ({"schedule": "fixed", "max_rounds": 1, "kappa.start": 0.5}, 0.5),
        ({"kappa.start": 0.2, "max_rounds": 1}, 0.2),
        ({"kappa.closing": 0.3}, 0.3),
        ({"kappa.closing": 0.0, "schedule": "fixed", "max_rounds": 1}, 0.0),
        ({"kappa.closing": "none"}, 0.9),
    ],
    ids=str,
)
async def test_the_panel_judges_closings_of_opponents_and_the_proposal_is_conciliatory(
    settings: dict[str, Any], level: float
) -> None:
    """Tables 6.5 and 6.6 mark closings written at 0.9; 0.3 is for what both write together (6.3.3.1, 6.F)."""
    floor, _ = await run_scripted(settings=settings)
    levels = [floor.asks[path].slots["contentiousness"]["level"] for path in floor.paths("closing/")]
    assert levels == [f"{level:.2f}"] * 2
    assert floor.event("closing")["kappa"] == level
    assert {floor.asks[path].slots["contentiousness"]["level"] for path in floor.paths("joint/")} == {"0.30"}


@pytest.mark.parametrize("schedule", ["geometric", "three-phase", "fixed"])
@pytest.mark.parametrize("then", ["go on", "end"])
async def test_a_level_that_a_person_set_holds_for_the_closings(schedule: str, then: str) -> None:
    set_to = {"moderation/round/0": Decision("set kappa", "0.6"), "moderation/round/0/1": Decision(then)}
    floor, _ = await run_scripted(settings={"schedule": schedule, "max_rounds": 2}, decisions=set_to)
    assert floor.event("closing")["kappa"] == 0.6
