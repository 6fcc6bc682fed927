"""What EVINCE's sides are asked: rebuttals of what is shown, and of nothing else."""

from __future__ import annotations

import pytest
from scripted_evince import FIRST_A, FIRST_B, JUDGED, PRINTED, debate, reads, says
from scripted_floor import Script

from moot.protocols.evince.side_state import Estimate, Prediction

WITHHELD = "(arguments withheld)"
WEAK: Script = {"crit/*/agent/0/*": reads(2), "crit/*/agent/1/*": reads(8)}
MOVING: Script = {"round/*/agent/0": says(FIRST_A), "round/*/agent/1": says(FIRST_B)}


class TestRebuttals:
    async def test_of_what_is_shown(self) -> None:
        _, floor = await debate(PRINTED)
        for path in floor.paths("round/"):
            opens = path == "round/0/agent/0"
            assert ("rebuttals" in floor.prompt(path)) is not opens
            assert floor.asks[path].reply is (Estimate if opens else Prediction)

    async def test_none_when_all_is_withheld_with_a_note(self) -> None:
        _, floor = await debate({**MOVING, **WEAK})
        for path in ("round/0/agent/1", "round/1/agent/1"):
            assert "rebuttals" not in floor.prompt(path)
            assert WITHHELD in floor.prompt(path)
            assert floor.asks[path].reply is Estimate
        hearing = floor.prompt("round/1/agent/0")
        assert "rebuttals" in hearing
        assert WITHHELD not in hearing

    async def test_of_an_earlier_argument_that_is_still_shown(self) -> None:
        later: Script = {"crit/round/0/agent/0/*": reads(8), **WEAK}
        _, floor = await debate({**MOVING, **later})
        heard = floor.prompt("round/1/agent/1")
        assert "rebuttals" in heard
        assert WITHHELD in heard

    @pytest.mark.parametrize("script", [JUDGED, WEAK], ids=["passed", "below the bar"])
    async def test_none_of_distributions(self, script: Script) -> None:
        _, floor = await debate({**MOVING, **script}, history="distribution")
        for path in floor.paths("round/"):
            assert "rebuttals" not in floor.prompt(path)
            assert WITHHELD not in floor.prompt(path), "by the setting nobody sees arguments"
