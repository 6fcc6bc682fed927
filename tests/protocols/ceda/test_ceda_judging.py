"""The judges and the classifier: majority, ties, abstentions, missing ones, and whose label counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ceda_script import DENY, messages, ruling, run_check, states

from moot.protocols.ceda.judging import majority
from moot.protocols.ceda.replies import JudgeReply
from moot.protocols.ceda.state import Output, rebuild
from moot.protocols.errors import QuorumFailed
from moot.protocols.lookups import Classified
from moot.protocols.reply_parsing import InvalidReply, parse_reply


def judges(*replies: dict[str, Any] | None) -> dict[str, Any]:
    return {f"judge/{j}": reply for j, reply in enumerate(replies)}


@pytest.mark.parametrize(
    ("verdicts", "answer", "verdict"),
    [
        ((1,), "supported", 1),
        ((0,), "hallucinated", 0),
        ((1, 0, 0), "hallucinated", 0),
        ((1, 0), None, None),
        ((1, None, None), "supported", 1),
        ((None,), None, None),
        ((0, None, 1), None, None),
    ],
)
async def test_the_majority_of_those_who_say_something(verdicts: Any, answer: Any, verdict: Any) -> None:
    script = judges(*(ruling(each, summary=f"by {j}") for j, each in enumerate(verdicts)))
    floor, found = await run_check(changes=script, judges=len(verdicts))
    assert (found.answer, found.payload["verdict"]) == (answer, verdict)
    assert found.payload["source"] == (None if answer is None else "judges")
    assert ("undecided" in found.flags) is (answer is None)
    assert floor.event("ruling")["verdict"] == verdict
    assert floor.event("ruling")["summary"] == f"by {verdicts.index(verdict) if verdict in verdicts else 0}"
    assert [each["verdict"] for each in floor.event("ruling")["judges"]] == list(verdicts)


async def test_the_first_judge_of_the_majority_speaks_for_it() -> None:
    script = judges(
        ruling(0, summary="No.", disputed=["the year"]), ruling(1, summary="Yes.", agreed=["the place"]), ruling(1)
    )
    _, found = await run_check(changes=script, judges=3)
    assert (found.payload["summary"], found.payload["agreed"], found.payload["disputed"]) == ("Yes.", ["the place"], [])


async def test_a_judge_that_fails_is_missing_and_counts_for_nothing() -> None:
    floor, found = await run_check(changes=judges(None, ruling(0, 0.9)), judges=2)
    assert found.answer == "hallucinated"
    assert found.flags == ("judges-missing",)
    assert found.payload["p_judges"] == 0.9
    missing, there = floor.event("ruling")["judges"]
    assert missing == {
        "judge": "judge/0",
        "verdict": None,
        "confidence": None,
        "summary": "",
        "consensus": None,
        "missing": "refused: scripted",
    }
    assert there["missing"] == ""


async def test_without_any_judge_the_case_fails() -> None:
    with pytest.raises(QuorumFailed, match="judge/0: refused"):
        await run_check(changes=judges(None, None), judges=2)


@pytest.mark.parametrize(
    ("replies", "p"),
    [
        ([(1, 0.75)], 0.25),
        ([(0, 0.75)], 0.75),
        ([(1, 0.75), (0, 0.5)], 0.375),
        ([(1, 0.75), (0, None)], None),
        ([(1, 0.75), (None, 0.5)], 0.25),
        ([(1, 0.75), None], 0.25),
        ([(1, None)], None),
        ([(None, None)], None),
    ],
)
async def test_the_stated_probability_is_the_mean_over_all_who_have_a_verdict(replies: Any, p: float | None) -> None:
    script = judges(*(None if each is None else ruling(*each) for each in replies))
    floor, found = await run_check(changes=script, judges=len(replies))
    assert found.payload["p_judges"] == found.payload["p_hallucinated"] == p
    assert floor.event("ruling")["p_hallucinated"] == p
    assert found.distribution == (None if p is None else {"supported": 1 - p, "hallucinated": p})
    assert found.confidence == (None if p is None or found.answer is None else max(p, 1 - p))
    assert "confidence-contradicts" not in found.flags


@pytest.mark.parametrize(
    ("replies", "answer", "p"),
    [
        ([(1, 0.3)], "supported", 0.7),
        ([(0, 0.25)], "hallucinated", 0.25),
        ([(1, 0.55), (1, 0.55), (0, 0.99)], "supported", 0.63),
    ],
)
async def test_a_label_and_a_probability_that_contradict_it_are_not_shown_as_one(
    replies: Any, answer: str, p: float
) -> None:
    floor, found = await run_check(changes=judges(*(ruling(*each) for each in replies)), judges=len(replies))
    assert (found.answer, found.flags) == (answer, ("confidence-contradicts",))
    assert (found.confidence, found.distribution, found.payload["p_hallucinated"]) == (None, None, None)
    assert found.payload["p_judges"] == floor.event("ruling")["p_hallucinated"] == pytest.approx(p)
    assert rebuild(states(floor))[-1].content.output == Output(label=answer, rationale="E1 settles it.")


@pytest.mark.parametrize(
    ("p", "answer", "flags"),
    [
        (0.9, "hallucinated", ("classifier-overruled",)),
        (0.2, "supported", ()),
        (0.5, "hallucinated", ("classifier-overruled",)),
    ],
)
async def test_the_classifier_s_label_counts_and_the_bare_verdict_stays_on_record(
    p: float, answer: str, flags: tuple[str, ...]
) -> None:
    classified = Classified(p_hallucinated=p, trained_on=True)
    floor, found = await run_check(changes=judges(ruling(1, 0.8, summary="So it is.")), classified=classified)
    assert floor.classified == ["So it is."]
    assert (found.answer, found.flags, found.payload["verdict"]) == (answer, flags, 1)
    assert found.confidence == max(p, 1 - p)
    assert (found.payload["source"], found.payload["p_hallucinated"]) == ("classifier", p)
    assert found.payload["p_judges"] == pytest.approx(0.2)
    recorded = {"p_hallucinated": p, "trained_on": True}
    assert found.payload["classifier"] == floor.event("ruling")["classifier"] == recorded
    json.dumps(found.payload)


async def test_the_classifier_decides_where_no_judge_does() -> None:
    _, found = await run_check(changes=judges(ruling(None, None)), classified=Classified(p_hallucinated=0.9))
    assert (found.answer, found.payload["source"]) == ("hallucinated", "classifier")


async def test_stances_of_both_debaters_first_and_last() -> None:
    _, found = await run_check(changes=messages(DENY, DENY, "AGREE"))
    assert found.payload["first_stances"] == {"debater/0": "denies", "debater/1": "supports"}
    assert found.payload["stances"] == {"debater/0": "supports", "debater/1": "supports"}
    _, alone = await run_check(settings={"max_turns": 1})
    assert alone.payload["stances"] == {"debater/0": "supports", "debater/1": None}


def reply(**changes: Any) -> JudgeReply:
    return JudgeReply.model_validate({"summary": "s", "verdict": 1} | changes)


@pytest.mark.parametrize(
    ("written", "verdict"),
    [
        (1, 1), (0, 0), (None, None), (True, 1), (False, 0), (1.0, 1), ("1", 1), ("0", 0), ("(1) correct", 1),
        ("correct", 1), ("Wrong", 0), ("hallucinated", 0), ("supported", 1), ("null", None), ("1.0", 1), ("0.0", 0),
        ("unsupported", 0), ("Not correct.", 0), ("refuted", 0), ("true", 1), ("false", 0), ("1 (correct)", 1),
        ("0 (wrong)", 0), ("(0) wrong", 0), ("undecided", None), ("Undecided.", None), ("not hallucinated", 1),
    ],
)  # fmt: skip
def test_spellings_of_a_verdict(written: Any, verdict: Any) -> None:
    assert reply(verdict=written).verdict == verdict


@pytest.mark.parametrize("written", [2, -1, 0.5, "0.5", "maybe", "not sure", [1], "1 (wrong)", "0/1", "10"])
def test_what_is_no_verdict_is_asked_for_again(written: Any) -> None:
    with pytest.raises(InvalidReply, match="verdict"):
        parse_reply(json.dumps({"summary": "s", "verdict": written}), JudgeReply)


def test_a_verdict_must_be_there_and_a_summary_too() -> None:
    for text in ('{"summary": "s"}', '{"verdict": 1}', '{"summary": "", "verdict": 1}'):
        with pytest.raises(InvalidReply):
            parse_reply(text, JudgeReply)


@pytest.mark.parametrize(
    ("written", "confidence"),
    [
        (0.8, 0.8), ("80%", 0.8), ("80 %", 0.8), ("0.8", 0.8), (85, 0.85), ("85", 0.85), ("1%", 0.01), (1, 1.0),
        (0, 0.0), (100, 1.0), (None, None), ("null", None),
    ],
)  # fmt: skip
def test_spellings_of_a_confidence(written: Any, confidence: float | None) -> None:
    assert reply(confidence=written).confidence == confidence


NO_CONFIDENCE = [
    1.5,
    -0.1,
    8,
    101,
    float("nan"),
    "nan",
    "inf",
    "high",
    "sure%",
    "%",
    "150%",
    "8/10",
    [0.8],
    {"p": 1},
    True,
]


@pytest.mark.parametrize("written", NO_CONFIDENCE)
def test_what_is_no_confidence_is_unknown(written: Any) -> None:
    found = reply(confidence=written)
    assert (found.verdict, found.confidence, found.p_hallucinated) == (1, None, None)


@pytest.mark.parametrize(
    ("written", "points"),
    [
        ("the year", ("the year",)),
        (["the year", "the place"], ("the year", "the place")),
        ([{"point": "the year"}], ()),
        (["the year", 3, None, " "], ("the year",)),
        ({"a": "b"}, ()),
        (None, ()),
        (7, ()),
    ],
)
def test_points_are_texts_and_what_is_none_is_left_out(written: Any, points: tuple[str, ...]) -> None:
    assert (reply(agreed=written).agreed, reply(disputed=written).disputed) == (points, points)


def test_the_majority_is_the_same_from_both_sides() -> None:
    for verdicts in ([1, 1, 0], [None, 1], [0, 1, None], [], [0, 0]):
        turned = [None if each is None else 1 - each for each in verdicts]
        found = majority(verdicts)  # type: ignore[arg-type]
        assert majority(turned) == (None if found is None else 1 - found)  # type: ignore[arg-type]
