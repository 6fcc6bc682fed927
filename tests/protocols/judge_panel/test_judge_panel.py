"""The protocol `judge-panel`: who is asked what, what the verdict says, and that a missing mark is no 0."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scripted_floor import Script, ScriptedFloor

from moot.protocols.case import Case, JudgedReply
from moot.protocols.errors import CaseUnfit, QuorumFailed
from moot.protocols.judge_panel.protocol import JudgePanel
from moot.protocols.messages import Verdict
from moot.protocols.registry import make_protocol
from moot.protocols.rubrics.rubric import Rubric, shipped_rubric, shipped_rubrics

SENT = (("system", "Be brief."), ("user", "Is it wet?"))
CASE = Case(
    id="c",
    question="Is it wet?",
    passage="It rained.",
    judged=JudgedReply(reply="Yes.", sent=SENT, role="weather man", domain="weather"),  # type: ignore[arg-type]
)
RUBRIC = {
    "name": "short",
    "instructions": "Judge.",
    "dimensions": {
        "clarity": {"question": "Clear?", "levels": {"0": "murky", "1": "clear"}},
        "depth": {"question": "Deep?", "levels": {"1": "flat", "2": "so-so", "3": "deep"}, "passes_at": 2},
    },
    "flag": "it is rude",
}


def sheet(clarity: int, depth: int, flag: int = 0) -> dict[str, Any]:
    return {"clarity": clarity, "depth": depth, "critical_flag": flag, "reasoning": "Thus."}


def judged(script: Script, *, judges: int = 2, passes: int = 2) -> tuple[Verdict, ScriptedFloor]:
    floor = ScriptedFloor(CASE, script, judges=judges)
    protocol = make_protocol("judge-panel", {"rubric": RUBRIC, "passes": passes})
    return asyncio.run(protocol.run(CASE, floor)), floor


def test_every_judge_reads_the_reply_in_every_pass() -> None:
    verdict, floor = judged({"*": sheet(1, 3)})
    paths = [f"assessment/reply/judge/{j}/pass/{n}" for j in range(2) for n in range(2)]
    assert floor.paths() == paths
    assert [floor.asks[path].sample for path in paths] == [0, 1, 0, 1]
    slots = floor.asks[paths[0]].slots
    assert slots["sent"] == [list(message) for message in SENT]
    assert (slots["reply"], slots["evidence"], slots["role"]) == ("Yes.", "It rained.", "weather man")
    assert (verdict.answer, verdict.how, verdict.flags) == (None, "judged", ())


def test_the_verdict_has_means_medians_and_the_share_that_flags() -> None:
    sheets = {"0/pass/0": sheet(1, 3), "0/pass/1": sheet(1, 3), "1/pass/0": sheet(0, 1, 1), "1/pass/1": sheet(1, 2)}
    verdict, floor = judged({f"*/judge/{place}": said for place, said in sheets.items()})
    payload = verdict.payload
    assert payload["dimensions"] == {
        "clarity": {"mean": 0.75, "median": 1.0, "spread": 1},
        "depth": {"mean": 2.25, "median": 2.5, "spread": 2},
    }
    assert (payload["quality"], payload["flag"], payload["flagged"]) == ((4 + 4 + 0 + 3) / 4, 0.25, False)
    assert (payload["judgments"], payload["missing"], payload["abstentions"]) == (4, 0, {})
    noted = floor.event("assessment", "assessment/reply")
    assert (noted["role"], noted["domain"], noted["rubric"]) == ("weather man", "weather", "short")
    assert noted["passes_at"] == {"depth": 2}
    assert list(map(list, noted["scales"])) == [["clarity", 0, 1], ["depth", 1, 3], ["critical_flag", 0, 1]]


def test_a_judge_that_says_nothing_is_counted_and_in_no_mean() -> None:
    verdict, _ = judged({"*/judge/1/*": None, "*": sheet(1, 3, 1)})
    payload = verdict.payload
    assert (payload["judgments"], payload["missing"], payload["abstentions"]) == (2, 2, {"refused": 2})
    assert (payload["flag"], payload["flagged"], payload["dimensions"]["depth"]["mean"]) == (1.0, True, 3.0)
    assert verdict.flags == ("critical", "judges-missing")


def test_a_reply_that_nobody_judged_fails_and_says_so() -> None:
    with pytest.raises(QuorumFailed, match="refused 4"):
        judged({"*": None})


def test_a_case_to_debate_is_none_to_judge() -> None:
    case = Case(id="d", question="Is it?", labels=("Yes", "No"))
    with pytest.raises(CaseUnfit, match="no reply to judge"):
        asyncio.run(JudgePanel().run(case, ScriptedFloor(case, {})))


@pytest.mark.parametrize("name", ["reasoning", "factual"])
def test_a_rubric_is_named_or_given_as_data(name: str) -> None:
    made = make_protocol("judge-panel", {"rubric": name})
    assert isinstance(made, JudgePanel)
    dumped = made.settings.model_dump(mode="json")
    assert Rubric.model_validate(dumped["rubric"]) == shipped_rubric(name)
    again = make_protocol("judge-panel", dumped)
    assert isinstance(again, JudgePanel)
    assert again.settings == made.settings
    assert name in shipped_rubrics()
