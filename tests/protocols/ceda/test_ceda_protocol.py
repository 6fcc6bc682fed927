"""CEDA from the claim to the verdict: the debate's turns, its end, and what fails a case."""

from __future__ import annotations

from typing import Any

import pytest
from ceda_script import AGREE, DENY, ODD, UNCLEAR, claim_case, messages, run_check, stances

from moot.protocols.case import Case
from moot.protocols.errors import AskFailed, CaseUnfit
from moot.protocols.registry import make_protocol


async def test_the_steps_and_the_events() -> None:
    floor, verdict = await run_check(claim_case(passage=ODD))
    assert floor.paths() == ["turn/1", "turn/2", "judge/0"]
    assert [floor.asks[path].role for path in floor.paths()] == ["debater/0", "debater/1", "judge/0"]
    assert floor.kinds() == [*["state"] * 3, "evidence", *["state", "stance"] * 2, "state", "ruling"]
    assert (verdict.answer, verdict.how, verdict.rounds, verdict.flags) == ("supported", "consensus", 2, ())


@pytest.mark.parametrize(
    ("texts", "stances_", "how"),
    [
        ((AGREE, AGREE), ["supports", "supports"], "consensus"),
        ((DENY, AGREE), ["denies", "denies"], "consensus"),
        ((DENY, DENY, AGREE), ["denies", "supports", "supports"], "consensus"),
        ((DENY, DENY, DENY, DENY, DENY), ["denies", "supports", "denies", "supports", "denies"], "max turns"),
        ((UNCLEAR, AGREE, AGREE), [None, "supports", "supports"], "consensus"),
        ((AGREE, UNCLEAR, AGREE, UNCLEAR, AGREE), ["supports", None, "supports", None, "supports"], "max turns"),
    ],
)
async def test_a_debate_ends_when_both_have_one_stance(texts: tuple[str, ...], stances_: list[Any], how: str) -> None:
    floor, verdict = await run_check(changes=messages(*texts))
    assert stances(floor) == stances_
    assert (verdict.how, verdict.rounds) == (how, len(texts))
    assert floor.event("stance", f"turn/{len(texts)}/stance")["consensus"] is (how == "consensus")
    assert ("stance-unknown" in verdict.flags) is (None in stances_)


async def test_after_an_unclear_message_the_next_debater_is_asked_about_the_claim() -> None:
    floor, _ = await run_check(changes=messages(AGREE, UNCLEAR, DENY, AGREE))
    about = [floor.asks[path].slots["about"] for path in floor.paths("turn")]
    assert about == ["claim", "message", "claim", "message"]
    third = floor.event("stance", "turn/3/stance")
    assert third == {
        "turn": 3,
        "debater": "debater/0",
        "says": "DENY",
        "of": "claim",
        "stance": "denies",
        "stated": False,
        "implied": "denies",
        "consensus": False,
    }


async def test_a_debater_hears_all_earlier_messages() -> None:
    floor, _ = await run_check(changes=messages(DENY, DENY, AGREE))
    heard = floor.asks["turn/3"].slots["messages"]
    assert heard == [
        {"turn": 1, "speaker": "debater 1", "text": DENY, "says": "DENY", "stance": "denies"},
        {"turn": 2, "speaker": "debater 2", "text": DENY, "says": "DENY", "stance": "supports"},
    ]


async def test_evidence_at_odds_is_shown_to_different_debaters_and_all_of_it_to_the_judge() -> None:
    floor, _ = await run_check(claim_case(passage=ODD))
    seen = {path: [item["number"] for item in floor.asks[path].slots["evidence"]] for path in floor.paths()}
    assert seen == {"turn/1": ["E1"], "turn/2": ["E2"], "judge/0": ["E1", "E2"]}
    evidence = floor.event("evidence")
    assert evidence["shown_to"] == {"debater/0": ["E1"], "debater/1": ["E2"]}
    assert (evidence["considered"], len(evidence["conflicts"])) == (1, 1)
    named = ["E1 and E2 (their numbers differ)"]
    assert floor.asks["turn/1"].slots["conflicts"] == floor.asks["turn/2"].slots["conflicts"] == named
    (conflict,) = floor.asks["judge/0"].slots["conflicts"]
    assert conflict == {"between": "E1, E2", "text": "their numbers differ: 1932 against 1934 (year)"}


async def test_the_judge_gets_where_the_debaters_disagree() -> None:
    floor, _ = await run_check(claim_case(passage=ODD), messages("DENY: E2 says so.", "DENY: E1, not E2.", AGREE))
    slots = floor.asks["judge/0"].slots
    assert slots["disagreements"] == [
        "turn 2 (debater 2 supports the claim, naming E1, E2) against turn 1 (debater 1 denies the claim, naming E2)"
    ]
    assert [(each["says"], each["stance"]) for each in slots["messages"]] == [
        ("DENY", "denies"),
        ("DENY", "supports"),
        ("AGREE", "supports"),
    ]


async def test_item_numbers_are_not_found_inside_longer_ones() -> None:
    floor, _ = await run_check(claim_case(passage=ODD), messages("DENY: E12 and PRE1.", "DENY: (E1)."))
    assert "naming" not in floor.asks["judge/0"].slots["disagreements"][0].partition(" against ")[2]
    assert "naming E1)" in floor.asks["judge/0"].slots["disagreements"][0]


async def test_without_evidence_the_debate_continues_and_reports_it() -> None:
    floor, verdict = await run_check(claim_case(passage="Far from it @120."))
    assert floor.event("evidence")["items"] == []
    assert verdict.flags == ("no-evidence",)
    assert verdict.answer == "supported"


@pytest.mark.parametrize("turn", [1, 2])
async def test_a_debater_that_fails_fails_the_case(turn: int) -> None:
    with pytest.raises(AskFailed, match=f"turn/{turn}: refused"):
        await run_check(changes=messages(*[AGREE, AGREE][: turn - 1], None))


@pytest.mark.parametrize(
    "case", [Case(id="x", question="Is it?", labels=("Yes", "No")), Case(id="x", question="Is it?"), claim_case("  ")]
)
async def test_what_is_no_claim_is_refused(case: Case) -> None:
    with pytest.raises(CaseUnfit, match="ceda checks claims"):
        await run_check(case)


def test_settings_without_an_effect_are_equal() -> None:
    alone: Any = make_protocol("ceda", {"max_turns": 1})
    shared: Any = make_protocol("ceda", {"max_turns": 1, "evidence.shown": "shared"})
    assert alone.effective_settings() == shared.effective_settings()
    two: Any = make_protocol("ceda", {"max_turns": 2})
    assert two.effective_settings()["evidence"]["shown"] == "conflicts"
