"""A person moderates: every action, every unusable text, and the form that comes again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_floor import ScriptedFloor
from socrasynth_script import SUBJECT, finishing, run_scripted

from moot.protocols.messages import Decision
from moot.protocols.socrasynth.moderation import UnusableInput, edit_topics, read_kappa, read_topics
from moot.protocols.socrasynth.sides import Topic
from moot.protocols.text.folding import fold


def noted(floor: object) -> dict[str, str]:
    """Outcome of each noted moderation, by path."""
    return {e.path: e.data["outcome"] for e in floor.events if e.kind == "moderation"}  # type: ignore[attr-defined]


async def test_the_topics_are_edited_before_the_debate() -> None:
    decisions = {"moderation/topics": Decision("edit", "1. Noise: at night\n- Air")}
    floor, verdict = await run_scripted(decisions=decisions)
    assert floor.forms["moderation/topics"].actions == ("go on", "edit")
    assert floor.event("topics")["topics"] == [
        {"title": "Noise", "description": "at night"},
        {"title": "Air", "description": ""},
    ]
    assert floor.event("topics")["by"] == "person"
    assert floor.asks["round/0/agent/0"].slots["topics"][0]["title"] == "Noise"
    assert verdict.payload["topics"] == ["Noise", "Air"]
    assert "moderation/topics/1" in floor.forms


async def test_the_topics_are_shown_after_an_edit_that_changes_none() -> None:
    same = [Topic("Air", "all of it"), Topic("Trade")]
    decisions = {"moderation/topics": Decision("edit", "Air: all of it\nTrade")}
    floor = ScriptedFloor(SUBJECT, {}, decisions=decisions)
    assert await edit_topics(floor, same, path="moderation/topics") == tuple(same)
    assert floor.forms["moderation/topics/1"].body == "Done: edit.\n\nTopics:\n1. Air: all of it\n2. Trade"


async def test_kappa_and_questions_for_the_next_round() -> None:
    decisions = {
        "moderation/round/0": Decision("set kappa", "0.6"),
        "moderation/round/0/1": Decision("ask", "What of the elderly?"),
        "moderation/round/0/2": Decision("ask", "And in winter?"),
    }
    floor, _ = await run_scripted(settings={"max_rounds": 2}, decisions=decisions)
    level = floor.event("contentiousness", "round/1")
    assert (level["before"], level["after"], level["why"]) == (0.9, 0.6, "set by a person")
    assert floor.event("contentiousness", "round/2")["after"] == pytest.approx(0.5)
    for side in (0, 1):
        assert floor.asks[f"round/1/agent/{side}"].slots["questions"] == ["What of the elderly?", "And in winter?"]
        assert floor.asks[f"round/2/agent/{side}"].slots["questions"] == []
    assert floor.event("round", "round/1")["asked"] == ["What of the elderly?", "And in winter?"]
    assert "What of the elderly?" in floor.forms["moderation/round/0/3"].body


async def test_topics_edited_between_rounds() -> None:
    decisions = {"moderation/round/0": Decision("edit topics", "Air\nNoise")}
    floor, verdict = await run_scripted(settings={"max_rounds": 1}, decisions=decisions)
    assert [t["title"] for t in floor.asks["round/1/agent/1"].slots["topics"]] == ["Air", "Noise"]
    assert [t["title"] for t in floor.event("topics")["topics"]] == ["Trade", "Air", "Freedom"]
    assert floor.event("round", "round/1")["topics"] == ["Air", "Noise"]
    assert floor.event("panel")["topics"] == verdict.payload["topics"] == ["Air", "Noise"]


async def test_the_rounds_are_ended() -> None:
    floor, verdict = await run_scripted(decisions={"moderation/round/1": Decision("end")})
    assert (verdict.how, verdict.rounds, verdict.answer) == ("ended-by-person", 1, "For")
    assert floor.event("stop")["reason"] == "ended-by-person"


@pytest.mark.parametrize(
    ("action", "text", "why"),
    [
        ("set kappa", "very", "from 0 to 1, not 'very'"),
        ("set kappa", "1.5", "from 0 to 1"),
        ("set kappa", "nan", "from 0 to 1"),
        ("set kappa", "", "from 0 to 1"),
        ("ask", "  ", "the question as its text"),
        ("edit topics", " \n ", "the whole list"),
        ("edit topics", "Air\n...: too", "'...: too' has no title"),
        ("edit topics", "Air\nair: too", "'Air' stands in the list twice"),
        ("shout", "", "'shout' is not one of: go on, set kappa, ask, edit topics, end"),
    ],
)
async def test_an_invalid_decision_repeats_the_form_with_the_reason(action: str, text: str, why: str) -> None:
    decisions = {"moderation/round/0": Decision(action, text)}
    floor, verdict = await run_scripted(settings={"max_rounds": 1}, decisions=decisions)
    assert why in floor.forms["moderation/round/0/1"].body
    assert why in noted(floor)["moderation/round/0"]
    assert verdict.rounds == 1
    assert floor.event("contentiousness", "round/1")["after"] == pytest.approx(0.75)


async def test_more_is_asked_for_where_a_stop_was_due() -> None:
    changes = {"round/1/agent/?": finishing, "round/2/agent/?": finishing}
    floor, verdict = await run_scripted(changes, decisions={"moderation/round/1": Decision("ask", "Really?")})
    assert "both sides said that they had no more to say" in floor.forms["moderation/round/1"].body
    assert (verdict.how, verdict.rounds) == ("both-done", 2)


async def test_after_the_last_round_nobody_is_asked_what_could_not_be_done() -> None:
    floor, verdict = await run_scripted(settings={"max_rounds": 1})
    assert "moderation/round/0" in floor.forms
    assert "moderation/round/1" not in floor.forms
    failing, _ = await run_scripted({"round/1/agent/0": None})
    assert "moderation/round/1" not in failing.forms
    assert (verdict.how, verdict.rounds) == ("max_rounds", 1)


@pytest.mark.parametrize(("text", "rounds"), [("Trade\nNoise", 2), ("Trade\nAir: all of it", 1)])
async def test_topics_added_where_a_stop_was_due_are_argued(text: str, rounds: int) -> None:
    changes = {"round/1/agent/?": finishing, "round/2/agent/?": finishing}
    floor, verdict = await run_scripted(changes, decisions={"moderation/round/1": Decision("edit topics", text)})
    assert (verdict.how, verdict.rounds) == ("both-done", rounds)
    assert floor.event("panel")["topics"] == [line.partition(":")[0] for line in text.split("\n")]


async def test_the_form_says_how_it_was_scored_and_a_further_one_only_what_was_set() -> None:
    decisions = {
        "moderation/round/0": Decision("set kappa", "0.6"),
        "moderation/round/0/1": Decision("edit topics", "Air"),
    }
    floor, _ = await run_scripted(decisions=decisions)
    body = floor.forms["moderation/round/0"].body
    for expected in ("Contentiousness 0.90", "A 6.0, B 6.0", "Next: another round at contentiousness 0.75", "0 to 1"):
        assert expected in body
    assert "round/0/agent/1 on Trade" not in body, "the arguments are in the debate's news"
    again = floor.forms["moderation/round/0/1"].body
    assert again == "Done: set kappa.\n\nContentiousness of the next round, as you set it: 0.6"
    assert "Topics:\n1. Air" in floor.forms["moderation/round/0/2"].body


TITLES = st.text("ab:.-1 ", min_size=1, max_size=8).map(lambda text: " ".join(text.split())).filter(fold)


@given(st.lists(st.builds(Topic, TITLES, st.text("ab:\n ", max_size=6)), min_size=1, unique_by=lambda t: fold(t.title)))
async def test_the_topics_as_they_are_shown_are_read_back(topics: list[Topic]) -> None:
    floor = ScriptedFloor(SUBJECT, {}, decisions={"topics": Decision("go on")})
    await edit_topics(floor, topics, path="topics")
    assert read_topics(floor.forms["topics"].drafts["edit"], topics) == tuple(topics)


@given(st.text(max_size=60))
def test_any_text_is_a_level_or_unusable(text: str) -> None:
    try:
        kappa = read_kappa(text)
    except UnusableInput:
        return
    assert 0.0 <= kappa <= 1.0


@given(st.text(max_size=200))
def test_any_text_is_topics_or_unusable(text: str) -> None:
    try:
        topics = read_topics(text)
    except UnusableInput:
        return
    assert topics
    assert len({fold(topic.title) for topic in topics}) == len(topics)
    assert all(topic.title.strip() for topic in topics)


async def test_forms_say_what_needs_a_text_and_give_the_topics_to_edit() -> None:
    floor, _ = await run_scripted(decisions={"moderation/topics": Decision("edit", "1. Noise: at night\n- Air")})
    first, again, after = (floor.forms[f"moderation/{path}"] for path in ("topics", "topics/1", "round/0"))
    assert [topic.title for topic in read_topics(first.drafts["edit"])] == ["Trade", "Air", "Freedom"]
    assert again.drafts == {"edit": "Noise: at night\nAir"}
    assert after.drafts == {"edit topics": "Noise: at night\nAir"}
    assert [action for action in after.actions if after.takes_text(action)] == ["set kappa", "ask", "edit topics"]
