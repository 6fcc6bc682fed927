"""The state: what each step adds, and full versions rebuilt from that."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ceda_script import CLAIM, DENY, ODD, PICTURES, claim_case, messages, ruling, run_check, states

from moot.protocols.ceda.state import CedaState, rebuild
from moot.protocols.errors import RecordError
from moot.protocols.lookups import Classified


async def full_debate() -> tuple[Any, Any]:
    case = claim_case(passage=ODD, documents=("It rained.",), images=PICTURES)
    script = {**messages(DENY, DENY, "AGREE"), "vision/image/1": None, "judge/*": ruling(1)}
    return await run_check(case, script, {"role": "clerk"}, classified=Classified(p_hallucinated=0.7))


async def test_who_adds_in_which_stage() -> None:
    floor, _ = await full_debate()
    assert [(state["version"], state["stage"], state["by"]) for state in states(floor)] == [
        (0, "initial", "user"),
        (1, "intermediate", "retrieval"),
        (2, "intermediate", "vision"),
        (3, "intermediate", "context"),
        (4, "intermediate", "debater/0"),
        (5, "intermediate", "debater/1"),
        (6, "intermediate", "debater/0"),
        (7, "output", "judge"),
        (8, "output", "classifier"),
    ]
    assert [event.path for event in floor.events if event.kind == "state"] == [f"state/{n}" for n in range(9)]


async def test_every_version_is_rebuilt_from_the_events_in_any_order() -> None:
    floor, verdict = await full_debate()
    data = states(floor)
    random.Random(3).shuffle(data)
    versions = rebuild(data)
    assert [version.version for version in versions] == list(range(9))
    first, retrieved, seen, context, *_, judged, last = versions
    assert first.content.claim == last.content.claim == CLAIM
    assert (first.content.evidence, first.content.system_prompt.role) == ((), "clerk")  # type: ignore[union-attr]
    assert [item.id for item in retrieved.content.evidence] == ["E1", "E2", "E3"]
    assert [item.id for item in seen.content.evidence] == ["E1", "E2", "E3", "E4"]
    assert [missing.picture for missing in seen.content.missing_pictures] == [1]
    assert seen.content.looked_for == "Look for a date."
    assert (seen.content.conflicts, len(context.content.conflicts)) == ((), 1)
    assert [len(version.content.debate) for version in versions] == [0, 0, 0, 0, 1, 2, 3, 3, 3]
    assert [said.stance for said in last.content.debate] == ["denies", "supports", "supports"]
    assert judged.content.output is not None
    assert judged.content.output.label == "supported"
    assert last.content.output is not None
    assert (last.content.output.label, last.content.output.p_hallucinated) == (verdict.answer, 0.7)


async def test_what_prompts_show_is_what_the_state_holds() -> None:
    floor, _ = await full_debate()
    versions = rebuild(states(floor))
    for turn in (1, 2, 3):
        held: CedaState = versions[2 + turn]
        slots = floor.asks[f"turn/{turn}"].slots
        shown = set(held.content.shown_to[floor.asks[f"turn/{turn}"].role])
        assert [each["text"] for each in slots["evidence"]] == [i.text for i in held.content.evidence if i.id in shown]
        assert [each["text"] for each in slots["messages"]] == [said.text for said in held.content.debate]
    assert floor.event("evidence")["items"] == [item.model_dump() for item in versions[3].content.evidence]


async def test_a_missing_version_and_foreign_data_are_errors() -> None:
    floor, _ = await full_debate()
    data = states(floor)
    with pytest.raises(RecordError, match="version 4"):
        rebuild([each for each in data if each["version"] != 4])
    with pytest.raises(RecordError, match="cannot be read"):
        rebuild([{**data[0], "added": {"gold": "supported"}}])
    assert rebuild([]) == []
