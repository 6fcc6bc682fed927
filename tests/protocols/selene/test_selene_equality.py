"""Votes, gate, rounds and candidates compare answers as the task scores them, and show each as it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from scripted_floor import Script, ScriptedFloor, ScriptedPosition

from moot.protocols.case import Case, LabelledCase, Reference, Scoring
from moot.protocols.messages import Verdict
from moot.protocols.registry import make_protocol
from moot.protocols.tasks import Task, alike

SUM = Case(id="c", question="What does the house cost?", scoring="number")
SIGHT = Case(id="c", question="What stands in Paris?", scoring="short answer")


async def debate(
    case: Case, script: Script, settings: dict[str, Any] | None = None, name: str = "selene"
) -> tuple[Verdict, ScriptedFloor]:
    floor = ScriptedFloor(case, script)
    return await make_protocol(name, settings or {}).run(case, floor), floor


def openings(*said: tuple[str, float]) -> Script:
    return {
        f"opening/agent/{i}": ScriptedPosition(answer, confidence, p=None)
        for i, (answer, confidence) in enumerate(said)
    }


@pytest.mark.parametrize(
    ("answers", "scoring", "expected"),
    [
        (["57,500", "57500", "12", "$57,500"], "number", ["57,500", "57,500", "12", "57,500"]),
        (["1/3", "0.33333333", "none"], "number", ["1/3", "1/3", "none"]),
        (["no number", "No number."], "number", ["no number", "no number"]),
        (["1000000", "1000001"], "number", ["1000000", "1000001"]),
        (["3", "3.0"], "score", ["3", "3"]),
        (
            ["the Eiffel Tower", "Louvre", "Eiffel Tower"],
            "short answer",
            ["the Eiffel Tower", "Louvre", "the Eiffel Tower"],
        ),
        (["57,500", "57500"], "label", ["57,500", "57500"]),
        (["Yes.", "yes"], "label", ["Yes.", "Yes."]),
        ([], "number", []),
    ],
)
def test_equal_answers_are_spelled_alike(answers: list[str], scoring: Scoring, expected: list[str]) -> None:
    assert alike(answers, scoring) == expected


@pytest.mark.parametrize(
    ("case", "said", "answer"),
    [
        (SUM, [("57,500", 0.6), ("57500", 0.6), ("12", 0.9)], "57,500"),
        (SIGHT, [("the Eiffel Tower", 0.6), ("Eiffel Tower", 0.6), ("Louvre", 0.9)], "the eiffel tower"),
        (Case(id="c", question="?"), [("57,500", 0.6), ("57500", 0.6), ("12", 0.9)], "12"),
    ],
    ids=["number", "short answer", "label"],
)
async def test_a_vote(case: Case, said: Sequence[tuple[str, float]], answer: str) -> None:
    verdict, _ = await debate(case, openings(*said), {"vote.samples": 1}, "majority-vote")
    assert verdict.answer == answer


async def test_a_debate_compares_values_and_shows_the_original_answers() -> None:
    script: Script = {
        **openings(("57,500", 0.6), ("57500", 0.6), ("12", 0.9)),
        "round/1/agent/2": ScriptedPosition("57500.0", p=None),
        "round/*/agent/0": ScriptedPosition("57500", p=None),
        "round/*": ScriptedPosition("57,500", p=None),
        "judge/*": 0.8,
    }
    verdict, floor = await debate(SUM, script)
    assert (verdict.answer, verdict.how) == ("57,500", "stable-agree")
    shown = floor.asks["round/1/agent/1"].slots
    assert (shown["own"]["answer"], [each["answer"] for each in shown["others"]]) == ("57500", ["57,500", "12"])
    assert floor.event("round", "round/1")["changed"] == ["agent/2"]
    assert [each["answer"] for each in floor.event("judging")["candidates"]] == ["57,500"]
    assert floor.event("judging")["candidates"][0]["support"] == 3


async def test_resampled_probabilities_count_equal_values() -> None:
    script: Script = {
        **openings(("57,500", 0.9), ("57,500", 0.9), ("57,500", 0.9)),
        "resample/*/1": ScriptedPosition("57500", p=None), "resample/*": ScriptedPosition("12", p=None), "round/*":
        ScriptedPosition("12"), "judge/*": 0.9,
    }  # fmt: skip
    _, floor = await debate(SUM, script, {"gate": {"intrinsic": "resampled", "resamples": 2}})
    assert floor.event("gate")["intrinsic"] == [0.5, 0.5, 0.5]


def test_the_task_says_how_answers_are_compared() -> None:
    rows = [
        {"question": "How many?", "scoring": "number", "gold": "18"},
        {"question": "Who?", "scoring": "short answer", "accepted": ["Sucre"]},
        LabelledCase(Case(id="x", question="Is it?"), 0, "18", reference=Reference(scoring="number")),
    ]
    found = [item.case for item in Task.from_cases(rows).cases()]  # type: ignore[arg-type]
    assert [case.scoring for case in found] == ["number", "short answer", "number"]
