"""Agent B: what is asked of the vision agent, what becomes evidence, and pictures that cannot be described."""

from __future__ import annotations

import pytest
from ceda_script import CLAIM, PICTURES, claim_case, run_check, states

from moot.protocols.errors import AskFailed


async def test_one_prompt_for_the_claim_and_one_description_for_each_picture() -> None:
    floor, verdict = await run_check(claim_case(images=PICTURES))
    assert floor.paths("vision") == ["vision/prompt", "vision/image/0", "vision/image/1"]
    prompt, first, second = (floor.asks[path] for path in floor.paths("vision"))
    assert (prompt.role, prompt.template, prompt.images) == ("vision/0", "ceda/image_prompt", ())
    assert [tuple(request.images) for request in (first, second)] == [PICTURES[:1], PICTURES[1:]]
    assert first.slots == second.slots == {"looked_for": "Look for a date."}
    items = floor.event("evidence")["items"]
    assert [(item["id"], item["kind"], item["document"], item["picture"]) for item in items] == [
        ("E1", "picture", "picture 1", 0),
        ("E2", "picture", "picture 2", 1),
    ]
    assert items[0]["similarity"] is None
    assert "no-evidence" not in verdict.flags


@pytest.mark.parametrize("setting", ["dynamic", "fixed"])
async def test_a_picture_is_read_for_what_was_asked(setting: str) -> None:
    floor, _ = await run_check(claim_case(images=PICTURES[:1]), settings={"vision.prompt": setting})
    user = floor.rendered("vision/image/0")[1]
    assert ("Look for a date." in user) is (setting == "dynamic")
    assert CLAIM not in user


async def test_equal_pictures_are_one_item_that_names_the_first() -> None:
    floor, _ = await run_check(claim_case(images=(PICTURES[0], PICTURES[1], PICTURES[0])))
    assert floor.paths("vision/image") == ["vision/image/0", "vision/image/1"]
    items = floor.event("evidence")["items"]
    assert [(item["id"], item["picture"]) for item in items] == [("E1", 0), ("E2", 1)]


async def test_descriptions_are_shared_by_picture() -> None:
    keys = []
    for question in ("The bridge is red.", "The bridge is blue."):
        floor, _ = await run_check(claim_case(question, images=PICTURES))
        keys.append(floor.shared_keys)
    assert keys[0] == keys[1]
    assert keys[0]["vision/image/0"] != keys[0]["vision/image/1"]


async def test_a_picture_that_fails_is_missing_evidence() -> None:
    floor, verdict = await run_check(claim_case(images=PICTURES), {"vision/image/0": None})
    (item,) = floor.event("evidence")["items"]
    assert (item["id"], item["picture"], item["document"]) == ("E1", 1, "picture 2")
    assert floor.asks["turn/1"].slots["missing_pictures"] == [1]
    assert floor.asks["judge/0"].slots["missing_pictures"] == [1]
    (added,) = (state["added"] for state in states(floor) if state["by"] == "vision")
    assert added["missing_pictures"] == [{"picture": 0, "reason": "refused: scripted"}]
    assert floor.event("evidence")["missing_pictures"] == [0]
    assert (verdict.answer, verdict.flags) == ("supported", ("pictures-missing",))


async def test_with_nothing_left_to_go_by_the_case_fails() -> None:
    with pytest.raises(AskFailed, match="vision/image/0: refused"):
        await run_check(claim_case(images=PICTURES), {"vision/*": None})
