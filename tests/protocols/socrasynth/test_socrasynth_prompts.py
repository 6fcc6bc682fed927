"""What the sides and the judges are sent: whole, fenced, and never against one's own side."""

from __future__ import annotations

import re
from typing import Any

import pytest
from socrasynth_script import SUBJECT, run_scripted

from moot.protocols.socrasynth.debater_slots import Positions, debater_slots
from moot.protocols.socrasynth.sides import AGAINST, FOR, SideTurn, Topic
from moot.protocols.templates import Templates

TEMPLATES = Templates()
TOPICS = (Topic("Air", "Who breathes it."), Topic("Trade", "Who sells."))
SPOKEN = ("socrasynth/opening", "socrasynth/refutation", "socrasynth/confirm", "socrasynth/closing")
FAULTS = r"(risks?|errors?|weak(ness)?|weak points?|downsides?|dangers?|objections?|harms?|drawbacks?)"


def prompt(
    template: str,
    side: Any = FOR,
    level: float = 0.9,
) -> str:
    said = [SideTurn(each, 0, {"Air": "So.", "Trade": "So."}) for each in (FOR, AGAINST)]
    slots = debater_slots(SUBJECT, TOPICS, side, level, said, Positions())
    more = {"round": 1, "deeper": [], "contradicted": [], "questions": []}
    return "\n".join(message.content for message in TEMPLATES.render(template, slots | more))


@pytest.mark.parametrize("template", SPOKEN)
@pytest.mark.parametrize("side", [FOR, AGAINST], ids=["for", "against"])
def test_at_the_highest_level_nobody_is_asked_for_the_risks_of_its_own_side(template: str, side: Any) -> None:
    """The printed table, used as it stands, has the proponent attack its own side at 0.9."""
    text = prompt(template, side).lower()
    assert f"argue {side.stance} the subject" in text
    asked = [sentence for sentence in re.split(r"(?<=[.:;])\s|\n", text) if re.search(rf"\b{FAULTS}\b", sentence)]
    assert asked, "at 0.9 the other side's faults are asked for"
    assert all("other side" in sentence for sentence in asked), asked
    assert not re.search(rf"{FAULTS}[^.]*\b(your|own)\b (own )?(side|stand|case|subject)", text)
    assert "it never turns you against your own" in text


async def test_judges_do_not_learn_which_text_is_the_debates() -> None:
    for panel, words in (("topics", 6), ("whole", 18)):
        floor, _ = await run_scripted(settings={"versus_qa": True, "panel": panel})
        assert floor.paths("versus/order")
        for path in floor.paths("versus/order"):
            text = floor.prompt(path)
            assert not re.search(r"debat|single|answer", text.lower())
            assert f"{words} words" in text
            assert "5 words" in text
