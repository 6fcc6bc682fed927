"""A debate against one model's answer, as in appendix 6.E: topic by topic, on the sides' arguments."""

from __future__ import annotations

from typing import Any

from socrasynth_script import SUBJECT, by_topic, closing, marks, run_scripted

from moot.protocols.messages import Slots


async def test_the_answer_is_asked_for_without_a_hint_from_the_debate() -> None:
    floor, _ = await run_scripted(settings={"versus_qa": True})
    asked = floor.prompt("versus/answer")
    assert SUBJECT.passage in asked
    assert not [title for title in ("Trade", "Air", "Freedom", "round/", "closing/", "point.") if title in asked]


async def test_every_topic_blind_and_in_both_orders() -> None:
    floor, verdict = await run_scripted(settings={"versus_qa": True}, judges=2)
    assert len(floor.paths("versus/order/")) == 2 * 3 * 2
    one, two = (floor.asks[f"versus/order/{order}/topic/2/judge/1"].slots for order in (1, 2))
    assert one["topic"]["title"] == "Air"
    assert one["first"] == two["second"]
    assert [part["text"] for part in one["first"]["parts"]] == [f"closing/agent/{i} on Air." for i in (0, 1)]
    assert [part["text"] for part in one["second"]["parts"]] == ["Another point at some length."]
    data = floor.event("versus")
    assert (data["topics"], data["by_topic"]) == (["Trade", "Air", "Freedom"], ["tie"] * 3)
    assert (data["winner"], data["words"]) == ("tie", {"debate": 18, "answer": 5})
    assert data["position_bias"] == {"judge/0": 6, "judge/1": 6}
    assert (verdict.payload["versus"], verdict.payload["versus_topics"]) == ("tie", ["tie"] * 3)


async def test_all_topics_in_one_call_where_the_panel_reads_so() -> None:
    changes = {"versus/order/2/judge/0": {"marks": by_topic(3, 9)["marks"][:2]}}
    floor, verdict = await run_scripted(changes, {"versus_qa": True, "panel": "whole"})
    assert len(floor.paths("versus/order/")) == 2
    first = floor.asks["versus/order/1/judge/0"].slots["first"]["parts"]
    assert [part["topic"] for part in first] == [1, 1, 2, 2, 3, 3]
    data = floor.event("versus")
    assert data["by_topic"] == ["debate", "debate", None], "a topic without marks in both orders is unknown"
    assert data["orders"][1]["rationales"] == ["Why.", "Why.", ""]
    assert verdict.payload["versus"] == "debate"


async def test_topics_may_go_to_different_texts_and_those_without_arguments_to_nobody() -> None:
    def on_two(path: str, slots: Slots) -> dict[str, Any]:
        said = closing(path, slots)
        return said | {"statements": said["statements"][:2]}

    changes: dict[str, Any] = {
        "closing/agent/?": on_two,
        "versus/order/1/topic/1/*": marks(9, 1),
        "versus/order/2/topic/1/*": marks(5, 5),
    }
    changes |= {f"versus/order/{order}/topic/2/*": marks(*pair) for order, pair in ((1, (2, 3)), (2, (3, 2)))}
    floor, verdict = await run_scripted(changes, {"versus_qa": True})
    assert not floor.paths("versus/order/1/topic/3")
    assert floor.event("versus")["by_topic"] == ["debate", "answer", None]
    assert (verdict.payload["versus"], floor.event("versus")["missing"]) == ("debate", 2)


async def test_unknown_without_an_answer_but_not_without_a_proposal() -> None:
    floor, verdict = await run_scripted({"versus/answer": None}, {"versus_qa": True})
    assert (verdict.payload["versus"], verdict.payload["versus_topics"]) == (None, [None] * 3)
    assert floor.event("versus")["why"]
    _, verdict = await run_scripted({"joint/draft/agent/0": None}, {"versus_qa": True})
    assert verdict.payload["versus"] == "tie"
