"""What EVINCE searches for when its consensus is uncertain: the case's documents, and the run's library."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_evince import CASE, HAV, HBV, HCV, JAUNDICE, JUDGED, says
from scripted_floor import Script, ScriptedFloor

from moot.protocols.case import Case
from moot.protocols.evince.protocol import Evince
from moot.protocols.evince.settings import EvinceSettings
from moot.protocols.lookups import Passage
from moot.protocols.messages import Verdict

PASSAGES = [
    Passage(document="liver.md", chunk=4, text="HAV: food.", page=2, similarity=0.9),
    Passage(document="liver.md", chunk=7, text="HCV: blood.", similarity=0.8),
]
UNSURE = says({HCV: 0.35, HBV: 0.35, HAV: 0.3})
SCRIPT: Script = {"round/[01]/*": UNSURE, "round/*": says({HAV: 0.95, HBV: 0.05}), **JUDGED}


async def debate(script: Script, case: Case, passages: list[Passage], **settings: Any) -> tuple[Verdict, ScriptedFloor]:
    floor = ScriptedFloor(case, script, passages=passages)
    made = EvinceSettings.model_validate({"follow_ups": "never", "retrieve_from": 0.5, **settings})
    return await Evince(made).run(case, floor), floor


async def test_an_uncertain_debate_searches_the_library() -> None:
    verdict, floor = await debate(SCRIPT, CASE, PASSAGES)
    assert "HAV: food." not in floor.prompt("round/1/agent/0")
    for path in ("round/2/agent/0", "round/2/agent/1"):
        assert "HAV: food." in floor.prompt(path)
    found = floor.event("retrieved")
    assert found["passages"] == [
        {"document": "liver.md", "chunk": 4, "page": 2},
        {"document": "liver.md", "chunk": 7, "page": None},
    ]
    assert found["documents"] == []
    (query,) = floor.searched
    assert CASE.question in query
    assert HAV in query
    assert verdict.answer == HAV
    assert "retrieved" in verdict.flags


async def test_what_says_the_same_is_shown_once_after_the_cases_own_documents() -> None:
    case = Case(id="j", question="Which?", labels=JAUNDICE, documents=("HCV: blood.", "HBV: blood, too."))
    _, floor = await debate(SCRIPT, case, PASSAGES)
    assert floor.asks["round/2/agent/0"].slots["evidence"] == ["HCV: blood.", "HBV: blood, too.", "HAV: food."]


async def test_with_nothing_to_be_found_there_is_no_second_debate() -> None:
    verdict, floor = await debate({"round/*": UNSURE, **JUDGED}, CASE, [])
    assert "retrieved" not in floor.kinds()
    assert verdict.rounds == 1


@pytest.mark.parametrize(
    ("script", "settings"),
    [
        ({"round/*": says({HCV: 0.95, HBV: 0.05})}, {}),
        ({"round/*": UNSURE}, {"retrieve": 0}),
        ({"round/*": UNSURE}, {"schedule": "ensemble"}),
    ],
    ids=["certain", "not wanted", "no debate"],
)
async def test_nothing_is_searched_without_need(script: Script, settings: dict[str, Any]) -> None:
    _, floor = await debate({**script, **JUDGED}, CASE, PASSAGES, **settings)
    assert floor.searched == []
