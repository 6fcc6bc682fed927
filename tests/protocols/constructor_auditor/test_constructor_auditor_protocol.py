"""The steps of constructor-auditor, what fails a case and what does not, and the forms of the answer."""

from __future__ import annotations

import re
from typing import Any

import pytest
from constructor_auditor_script import CASES, ESSAY, GOOD, PROBLEM, QUESTION, SHEET, run_scripted
from msgspec.structs import replace
from scripted_floor import ScriptedFloor

from moot.protocols.case import Case, Image
from moot.protocols.constructor_auditor.domains import domain_of
from moot.protocols.constructor_auditor.replies import synthesis_for
from moot.protocols.errors import AskFailed, CaseUnfit
from moot.protocols.lookups import Passage
from moot.protocols.messages import Turn
from moot.protocols.registry import make_protocol
from moot.protocols.reply_ids import load_reply, reply_id
from moot.protocols.reply_parsing import InvalidReply, parse_reply


async def test_the_steps() -> None:
    floor, verdict = await run_scripted(settings={"judge.passes": 2}, judges=2)
    assert floor.paths()[:3] == ["opening", "challenge", "synthesis"]
    judged = [f"assessment/{of}/judge/{j}/pass/{n}" for of in ("opening", "challenge") for j in (0, 1) for n in (0, 1)]
    assert floor.paths("assessment") == judged
    assert floor.asks["challenge"].slots["argument"] == "Claim: the opening."
    both = floor.asks["synthesis"].slots
    assert (both["argument"], both["challenge"]) == ("Claim: the opening.", "Challenge: the challenge.")
    assert (verdict.answer, verdict.how, verdict.rounds) == ("Eiffel", "synthesis", 1)
    assert verdict.payload["quality"] == {"constructor": 8.0, "auditor": 8.0}
    assert verdict.flags == ()


async def test_the_synthesis_and_all_judgments_are_in_flight_together() -> None:
    floor, _ = await run_scripted(judges=3)
    (together,) = floor.together
    assert together[0] == "synthesis"
    assert len(together) == 1 + 2 * 3


async def test_a_judge_sees_the_prompt_and_the_reply() -> None:
    pictures = (Image("image/png", b"one"), Image("image/png", b"two"))
    floor, _ = await run_scripted(replace(QUESTION, images=pictures))
    asked = floor.asks["assessment/challenge/judge/0/pass/0"]
    slots = asked.slots
    assert tuple(asked.images) == pictures
    turn: Any = Turn("challenge", "", "", "", None, None, None, None)  # type: ignore[arg-type]
    assert slots["sent"] == [[message.role, message.content] for message in await floor.sent(turn)]
    assert slots["reply"] == "Challenge: the challenge."
    assert (slots["role"], slots["domain"]) == ("Challenger (auditor)", "factual QA")


async def test_the_events_say_what_each_judge_found() -> None:
    broken = {"assessment/opening/judge/1/*": None, "assessment/challenge/*": {**SHEET, "critical_flag": 1}}
    floor, verdict = await run_scripted(changes=broken, judges=2)
    opening, challenge = (floor.event("assessment", f"assessment/{path}") for path in ("opening", "challenge"))
    assert (opening["role"], opening["reply"], opening["domain"]) == ("constructor", "opening", "factual QA")
    assert [mark["missing"] for mark in opening["judges"]] == ["", "refused: scripted"]
    assert (opening["quality"], opening["flag"], opening["missing"]) == (8.0, 0.0, 1)
    assert (challenge["quality"], challenge["flag"], challenge["missing"]) == (0.0, 1.0, 0)
    assert verdict.flags == ("critical-auditor", "judges-missing")
    assert verdict.payload["flagged"] == {"constructor": False, "auditor": True}


async def test_judgments_that_all_are_missing_are_unknown_and_fail_nothing() -> None:
    floor, verdict = await run_scripted(changes={"assessment/*": None})
    assert verdict.answer == "Eiffel"
    assert verdict.flags == ("judges-missing",)
    assert verdict.payload["quality"] == {"constructor": None, "auditor": None}
    assert floor.event("assessment", "assessment/opening")["quality"] is None


@pytest.mark.parametrize("path", ["opening", "challenge", "synthesis"])
async def test_a_step_that_fails_fails_the_case(path: str) -> None:
    with pytest.raises(AskFailed, match=f"{path}: refused"):
        await run_scripted(changes={path: None})


async def test_what_judges_found_is_kept_when_the_synthesis_fails() -> None:
    floor = ScriptedFloor(QUESTION, {"synthesis": None, **GOOD})
    with pytest.raises(AskFailed):
        await make_protocol("constructor-auditor").run(QUESTION, floor)
    assert floor.kinds() == ["assessment", "assessment"]


FIRST = {"opening": "Claim, Evidence, Reasoning", "challenge": "Challenge, Counter-Evidence, Reasoning"}
LAST = {"opening": "Evidence, Reasoning, Claim", "challenge": "Counter-Evidence, Reasoning, Challenge"}
"""What was derived comes after its derivation."""


@pytest.mark.parametrize("path", FIRST)
@pytest.mark.parametrize(
    ("case", "settings", "expected"),
    [
        (ESSAY, {}, {}),
        (QUESTION, {}, FIRST),
        (PROBLEM, {}, LAST),
        (PROBLEM, {"answer_first": True}, FIRST),
        (PROBLEM, {"sections": "never"}, {}),
        (ESSAY, {"sections": "always"}, FIRST),
    ],
)
async def test_sections_are_labelled_as_in_the_source_of_the_domain(
    path: str, case: Case, settings: dict[str, Any], expected: dict[str, str]
) -> None:
    floor, _ = await run_scripted(case, {"synthesis": {"answer": "3"}}, settings)
    told = floor.instructions(path).partition("labelled sections")[2]
    labels = ", ".join(re.findall(r"^([\w-]+): ", told, re.MULTILINE))
    assert labels == (f"{expected[path]}, Conclusion" if expected else "")


@pytest.mark.parametrize("path", ["opening", "challenge"])
async def test_speakers_about_a_text_see_no_score_that_was_given(path: str) -> None:
    floor, _ = await run_scripted(ESSAY, {"synthesis": {"answer": "3"}})
    user = floor.rendered(path)[1]
    assert ESSAY.question not in user
    assert not re.search(r'lowest|highest|score="', user)
    for shown in (ESSAY.passage, "3: focused. 0: none.", "Write on patience."):
        assert shown in user


LABELLED = Case(id="l", question="Was it built?", passage="It was.", labels=("Yes", "No"))


@pytest.mark.parametrize("path", ["opening", "challenge"])
@pytest.mark.parametrize("sections", ["always", "never"])
@pytest.mark.parametrize("domain", ["mathematics", "factual QA"])
async def test_with_labels_no_rule_of_a_speaker_contradicts_another(path: str, sections: str, domain: Any) -> None:
    """Who argues for a candidate names a label, who solves a problem ends with one, and neither is told otherwise."""
    floor, _ = await run_scripted(
        replace(LABELLED, domain=domain), {"synthesis": {"answer": "Yes"}}, {"sections": sections}
    )
    told = floor.instructions(path)
    assert "is exactly one of: Yes, No" in told
    assert ("The answer is exactly" in told) == ('"Final answer: "' in told) == (domain == "mathematics")
    assert "number" not in told
    assert "declare no" not in told


CLOSED = Case(id="n", question="Who built the tower?")
FOUND = (Passage(document="towers.txt", chunk=4, text="Eiffel's firm built it.", similarity=0.8),)


async def test_a_question_without_a_passage_is_debated_with_what_is_found() -> None:
    floor, _ = await run_scripted(CLOSED, passages=FOUND)
    assert floor.searched == [CLOSED.question]
    for path in ("opening", "challenge", "synthesis"):
        assert floor.asks[path].slots["passages"] == ["Eiffel's firm built it."]
    assert floor.event("retrieved")["passages"] == [{"document": "towers.txt", "chunk": 4, "page": None}]
    own = replace(CLOSED, documents=("It is made of iron.",))
    floor, _ = await run_scripted(own, passages=FOUND)
    assert floor.asks["opening"].slots["passages"] == ["It is made of iron.", "Eiffel's firm built it."]


def test_roles_and_their_decoding() -> None:
    one: Any = make_protocol("constructor-auditor")
    assert one.roles == ("constructor", "auditor", "synthesizer", "judge")
    assert one.speakers == ("constructor", "auditor")
    assert one.needs_logprobs
    assert one.temperatures == {"constructor": 1.0, "auditor": 1.0, "judge": 0.0}
    assert one.top_ps == {"constructor": 1.0, "auditor": 1.0}
    several: Any = make_protocol("constructor-auditor", {"judge.passes": 3, "logprobs": False})
    assert several.temperatures == {"constructor": 1.0, "auditor": 1.0}
    assert not several.needs_logprobs
    none: Any = make_protocol("constructor-auditor", {"judge.when": "never"})
    assert "judge" not in none.roles
    assert set(none.reply_tokens) == set(none.roles)
    assert set(none.temperatures) <= set(none.roles)


def test_the_domain_is_the_cases_own_or_inferred_from_its_shape() -> None:
    assert {domain: domain_of(case) for domain, case in CASES.items()} == {domain: domain for domain in CASES}
    assert domain_of(Case(id="b", question="Is it?", labels=("Yes", "No"))) == "factual QA"
    with pytest.raises(CaseUnfit, match="criterion"):
        domain_of(Case(id="x", question="How good?", domain="rubric scoring"))


def _read(case: Case, text: str) -> str | None:
    model = synthesis_for(case, domain_of(case))
    assert load_reply(reply_id(model)) is model, "an agent finds it by its path"
    return parse_reply(text, model, case.labels, case.choices, case.aliases).answer


UNLABELLED = Case(id="u", question="Score it.", criterion=ESSAY.criterion, passage="x")


@pytest.mark.parametrize(
    ("case", "answer", "read"),
    [
        (ESSAY, "3", "3"),
        (ESSAY, "3.0", "3"),
        (ESSAY, '"2"', "2"),
        *((case, written, "3") for case in (ESSAY, UNLABELLED) for written in ('"3.0"', '"+3"', '"3/3"')),
        (UNLABELLED, "0", "0"),
        (UNLABELLED, '" 3 "', "3"),
        (PROBLEM, "36", "36"),
        (PROBLEM, "-1.5", "-1.5"),
        (PROBLEM, '"1,234 apples"', "1,234 apples"),
        (QUESTION, '"Gustave Eiffel."', "gustave eiffel"),
        (QUESTION, "1889", "1889"),
        (Case(id="b", question="Is it?", labels=("Yes", "No")), "true", "Yes"),
    ],
)
def test_answers_as_models_write_them(case: Case, answer: str, read: str) -> None:
    assert _read(case, f'{{"answer": {answer}, "rationale": "So."}}') == read


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        (ESSAY, "4"),
        (ESSAY, "2.5"),
        (ESSAY, '"good"'),
        (UNLABELLED, "-1"),
        (UNLABELLED, "4"),
        (UNLABELLED, "2.5"),
        (UNLABELLED, '"2 or 3"'),
        (UNLABELLED, '"2/5"'),
        (ESSAY, '"2/5"'),
        (PROBLEM, '"many"'),
        (QUESTION, '""'),
        (QUESTION, "null"),
    ],
)
def test_an_answer_off_its_form_cannot_be_read(case: Case, answer: str) -> None:
    with pytest.raises(InvalidReply):
        _read(case, f'{{"answer": {answer}, "rationale": "So."}}')
