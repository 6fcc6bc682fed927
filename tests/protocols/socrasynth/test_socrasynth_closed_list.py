"""SocraSynth on a closed list (the source's study of diagnoses): own answers, concession, a scored consensus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from socrasynth_script import conceding, run_scripted, speech

from moot.protocols.case import Case
from moot.protocols.messages import Slots

CASE = Case(id="x", question="Which disease?", passage="Itching.", labels=("Flu", "Malaria", "Hepatitis"))
LETTERED = Case(id="y", question="Which disease?", labels=("A", "B"), choices=("flu", "malaria"))


def naming(*answers: str) -> dict[str, Any]:
    """Openings in which the sides name these answers."""

    def opening(path: str, slots: Slots) -> dict[str, Any]:
        return {**speech(path, slots), "answer": answers[int(path[-1])]}

    return {"round/0/agent/?": opening}


def proposing(draft: str, amended: str) -> dict[str, Any]:
    points = {"points": ["P."], "questions": ["Q?"]}
    return {
        "joint/draft/agent/0": {"answer": draft, **points},
        "joint/amend/agent/1": {"answer": amended, **points, "consents": True, "reservations": []},
    }


APART = naming("Flu", "Malaria")
SHORT: Mapping[str, Any] = {"max_rounds": 1}


async def test_both_name_their_own_answer_unseen_and_nobody_is_asked_for_topics() -> None:
    floor, verdict = await run_scripted({**APART, **proposing("Flu", "Flu")}, SHORT, case=CASE)
    assert not floor.paths("topics/")
    assert floor.event("topics")["topics"][0]["title"] == "The answer"
    opening = floor.asks["round/0/agent/1"].slots
    assert (opening["labels"], opening["own_answer"], opening["transcript"]) == (list(CASE.labels or ()), "", [])
    answering = floor.asks["round/1/agent/1"].slots
    assert (answering["own_answer"], answering["other_answer"]) == ("Malaria", "Flu")
    assert answering["transcript"][0]["stance"] == "Flu"
    named = {"agent/0": "Flu", "agent/1": "Malaria"}
    assert floor.event("positions") == {"named": named, "held": named, "agreed_at_once": False}
    assert verdict.payload["positions"] == {"named": named, "held": named}


async def test_openings_stay_blind_where_each_side_names_its_own_answer() -> None:
    floor, _ = await run_scripted(
        {**APART, **proposing("Flu", "Flu")}, {"openings": "answered", "max_rounds": 0}, case=CASE
    )
    assert floor.asks["round/0/agent/1"].slots["transcript"] == []


async def test_crit_and_the_panel_see_question_labels_and_what_each_side_argues_for() -> None:
    floor, _ = await run_scripted({**APART, **proposing("Flu", "Flu")}, SHORT, case=CASE)
    for path in ("crit/round/0/agent/1/judge/0", "crit/closing/agent/1/judge/0"):
        read = floor.asks[path].slots
        assert read["claim"] == "The answer is Malaria."
        assert read["facts"] == "Which disease?\nPossible answers: Flu; Malaria; Hepatitis\nItching."
    sheet = floor.asks["panel/order/2/topic/1/judge/0"].slots
    assert (sheet["first"]["stance"], sheet["second"]["stance"]) == ("Malaria", "Flu")
    assert (sheet["question"], sheet["answers"]) == ("Which disease?", ["Flu", "Malaria", "Hepatitis"])


@pytest.mark.parametrize("conceder", [0, 1])
async def test_a_concession_makes_the_others_answer_the_consensus_and_ends_the_debate(conceder: int) -> None:
    floor, verdict = await run_scripted({**APART, f"round/1/agent/{conceder}": conceding}, case=CASE)
    assert verdict.answer == ("Malaria", "Flu")[conceder]
    assert (verdict.how, verdict.rounds, verdict.payload["consensus"]) == ("agreed", 1, "concession")
    assert ("round/1/agent/1" in floor.asks) == (conceder == 1), "after A's concession there is nothing to refute"
    assert not [path for path in floor.asks if path.startswith(("confirm/", "closing/", "panel/"))]
    joint = floor.asks["joint/draft/agent/0"].slots
    assert (joint["agreed"], joint["labels"]) == (verdict.answer, [])
    assert floor.event("joint")["answer"] == verdict.answer
    for path in floor.paths("joint/"):
        text = floor.prompt(path)
        assert f"<agreed_answer>\n{verdict.answer}\n</agreed_answer>" in text, path
        assert "own_answer" not in text, "a side that has conceded is not held to the answer that it gave up"
        assert "your own" not in text
    assert verdict.payload["joint"]["questions"] is not None
    assert {"conceded", "no-consensus", "judges-missing"} & set(verdict.flags) == {"conceded"}


async def test_one_answer_named_by_both_at_once_is_the_recorded_consensus() -> None:
    floor, verdict = await run_scripted(naming("Hepatitis", "Hepatitis"), case=CASE)
    assert (verdict.answer, verdict.how, verdict.rounds) == ("Hepatitis", "agreed", 0)
    assert floor.event("positions")["agreed_at_once"]
    assert "agreed-at-once" in verdict.flags
    assert {path.split("/")[0] for path in floor.asks} == {"round", "crit", "joint"}


async def test_without_a_concession_the_joint_proposal_names_the_answer() -> None:
    floor, verdict = await run_scripted({**APART, **proposing("Flu", "Hepatitis")}, SHORT, case=CASE)
    assert (verdict.answer, verdict.how, verdict.payload["consensus"]) == ("Hepatitis", "max_rounds", "proposal")
    assert floor.asks["joint/amend/agent/1"].slots["draft"]["answer"] == "Flu"
    assert floor.asks["joint/consent/agent/0"].slots["amended"]["answer"] == "Hepatitis"
    assert verdict.payload["winner"] == "For", "the panel's ruling is kept, and is not the answer"


@pytest.mark.parametrize(
    "change",
    [
        {"joint/consent/agent/0": {"consents": False, "reservations": ["No."]}},
        {"joint/amend/agent/1": None},
        {"joint/draft/agent/0": None},
    ],
    ids=["no consent", "no amendment", "no draft"],
)
async def test_without_a_consensus_there_is_no_answer(change: dict[str, Any]) -> None:
    _, verdict = await run_scripted({**APART, **proposing("Flu", "Flu"), **change}, SHORT, case=CASE)
    assert (verdict.answer, verdict.payload["consensus"]) == (None, None)
    assert "no-consensus" in verdict.flags


async def test_concessions_in_the_last_words() -> None:
    yields = {"presented_all": True, "additions": [], "conceded": True}
    _, verdict = await run_scripted({**APART, "confirm/agent/0": yields}, SHORT, case=CASE)
    assert (verdict.answer, verdict.payload["consensus"]) == ("Malaria", "concession")
    swap = {**APART, "confirm/agent/?": yields, **proposing("Flu", "Flu")}
    floor, verdict = await run_scripted(swap, SHORT, case=CASE)
    assert verdict.payload["positions"]["held"] == {"agent/0": "Malaria", "agent/1": "Flu"}
    assert verdict.payload["consensus"] == "proposal"
    assert {"conceded", "both-conceded", "judges-missing"} & set(verdict.flags) == {"conceded", "both-conceded"}
    assert not [path for path in floor.asks if path.startswith(("closing/", "panel/"))], "neither has an own answer"
    for path in ("joint/draft/agent/0", "joint/consent/agent/0"):
        text = floor.prompt(path)
        assert "<own_answer>\nMalaria\n</own_answer>\n<other_answer>\nFlu\n</other_answer>" in text
        assert "that you hold now, not the one that you argued for" in text


async def test_a_debate_that_ends_in_agreement_is_compared_by_its_last_arguments() -> None:
    floor, _ = await run_scripted({**APART, "round/1/agent/1": conceding}, {"versus_qa": True}, case=CASE)
    assert not floor.paths("closing/")
    shown = floor.asks["versus/order/1/topic/1/judge/0"].slots["first"]["parts"]
    assert [part["text"] for part in shown] == [f"round/1/agent/{i} on The answer." for i in (0, 1)]
    assert floor.asks["versus/answer"].slots["answers"] == list(CASE.labels or ())


async def test_lettered_choices_are_shown_in_words_and_answered_by_letter() -> None:
    floor, verdict = await run_scripted({**naming("B", "A"), "round/1/agent/1": conceding}, case=LETTERED)
    assert floor.asks["round/1/agent/1"].slots["other_answer"] == "B) malaria"
    assert floor.asks["round/0/agent/0"].slots["answers"] == ["A) flu", "B) malaria"]
    assert verdict.answer == "B"
