"""What EVINCE's sides are asked: rebuttals of what is shown, a role beside an estimate, and a scale for each level."""

from __future__ import annotations

import re
from typing import Any

import pytest
from scripted_evince import FIRST_A, FIRST_B, JUDGED, PRINTED, debate, prompt, reads, says
from scripted_floor import Script

from moot.protocols.evince.standing import Estimate, Prediction

WITHHELD = "(arguments withheld)"
SCALE = "where 0 means full agreement with the other sides and 1 means"
SPREAD = "as widely as your doubt goes"
WEAK: Script = {"crit/*/agent/0/*": reads(2), "crit/*/agent/1/*": reads(8)}
MOVING: Script = {"round/*/agent/0": says(FIRST_A), "round/*/agent/1": says(FIRST_B)}


def plain(text: str) -> str:
    return " ".join(text.split())


class TestRebuttals:
    async def test_of_what_is_shown(self) -> None:
        _, floor = await debate(PRINTED)
        for path in floor.paths("round/"):
            opens = path == "round/0/agent/0"
            assert ("rebuttals" in prompt(floor, path)) is not opens
            assert floor.asks[path].reply is (Estimate if opens else Prediction)

    async def test_none_when_all_is_withheld_and_it_is_said(self) -> None:
        _, floor = await debate({**MOVING, **WEAK})
        for path in ("round/0/agent/1", "round/1/agent/1"):
            assert "rebuttals" not in prompt(floor, path)
            assert WITHHELD in prompt(floor, path)
            assert floor.asks[path].reply is Estimate
        hearing = prompt(floor, "round/1/agent/0")
        assert "rebuttals" in hearing
        assert WITHHELD not in hearing

    async def test_of_an_earlier_argument_that_is_still_shown(self) -> None:
        later: Script = {"crit/round/0/agent/0/*": reads(8), **WEAK}
        _, floor = await debate({**MOVING, **later})
        heard = prompt(floor, "round/1/agent/1")
        assert "rebuttals" in heard
        assert WITHHELD in heard

    @pytest.mark.parametrize("script", [JUDGED, WEAK], ids=["passed", "below the bar"])
    async def test_none_of_distributions(self, script: Script) -> None:
        _, floor = await debate({**MOVING, **script}, history="distribution")
        for path in floor.paths("round/"):
            assert "rebuttals" not in prompt(floor, path)
            assert WITHHELD not in prompt(floor, path), "by the setting nobody sees arguments"


class TestTheOrderOfAReply:
    """The template's form, its list and the reply type agree on what comes first."""

    @pytest.mark.parametrize("answer_first", [True, False])
    async def test_the_distribution_comes_first_or_last(self, answer_first: bool) -> None:
        _, floor = await debate(PRINTED, answer_first=answer_first)
        for path in floor.paths("round/"):
            request = floor.asks[path]
            fields = list(request.reply.model_fields)
            assert fields.index("distribution") == (0 if answer_first else len(fields) - 1)
            asked = prompt(floor, path)
            form = asked[asked.index('{"') : asked.index("]}")]
            assert re.findall(r'"(\w+)": \[', form) == fields
            assert re.findall(r'^- "(\w+)"', asked, re.MULTILINE) == fields


class TestRoles:
    async def test_the_explorer_spreads_and_the_opener_does_not(self) -> None:
        _, floor = await debate(PRINTED)
        told = [path for path in floor.paths("round/") if SPREAD in prompt(floor, path)]
        assert told == ["round/0/agent/1"]

    @pytest.mark.parametrize(("schedule", "levels"), [("adaptive", 1), ("none", 0)])
    async def test_every_level_comes_with_its_scale(self, schedule: str, levels: int) -> None:
        asked: dict[str, Any] = {"follow-ups/*": {"questions": ["Q"], "tests": ["T"]}}
        _, floor = await debate({**PRINTED, **asked}, schedule=schedule, follow_ups="always")
        for path in ("round/0/agent/1", "follow-ups/agent/0"):
            text = plain(prompt(floor, path))
            assert text.count("contentiousness is") == text.count(SCALE) == levels
