"""CRIT knows as much of either side's turn: what was said before it, and not the reply to it."""

from __future__ import annotations

import re

import pytest
from socrasynth_script import run_scripted


def turns_in(text: str) -> list[str]:
    """Paths of the turns that a scripted text comes from, in order."""
    return list(dict.fromkeys(re.findall(r"round/\d+/agent/\d", text)))


@pytest.mark.parametrize("scope", ["latest", "whole"])
async def test_crit_reads_each_turn_of_a_round_against_what_was_said_before_it(scope: str) -> None:
    """B answers A's turn of the round, and A B's of the round before: neither is read against the reply to it."""
    floor, _ = await run_scripted(settings={"max_rounds": 3, "crit_scope": scope})
    for number in (1, 2, 3):
        for side, last in ((0, number - 1), (1, number)):
            read = floor.asks[f"crit/round/{number}/agent/{side}/judge/0"].slots
            own = range(0 if scope == "whole" else number, number + 1)
            others = range(0 if scope == "whole" else last, last + 1)
            assert turns_in(read["text"]) == [f"round/{n}/agent/{side}" for n in own]
            assert turns_in(read["opposing"]) == [f"round/{n}/agent/{1 - side}" for n in others]


async def test_a_turn_is_read_against_the_last_argument_before_it_whoever_fails_or_concedes_bare() -> None:
    floor, _ = await run_scripted({"round/1/agent/1": None})
    assert turns_in(floor.asks["crit/round/1/agent/0/judge/0"].slots["opposing"]) == ["round/0/agent/1"]
    floor, _ = await run_scripted({"round/1/agent/0": {"conceded": True}}, {"max_rounds": 1})
    assert turns_in(floor.asks["crit/round/1/agent/1/judge/0"].slots["opposing"]) == ["round/0/agent/0"]


@pytest.mark.parametrize("scope", ["latest", "whole"])
async def test_openings_are_read_alike_and_those_read_alone_are_no_measure_of_a_rise(scope: str) -> None:
    found = {}
    for openings in ("blind", "answered"):
        floor, verdict = await run_scripted(settings={"openings": openings, "crit_scope": scope, "patience": 1})
        read = [floor.asks[f"crit/round/0/agent/{i}/judge/0"].slots["opposing"] for i in (0, 1)]
        found[openings] = ([turns_in(each) for each in read], verdict.how, verdict.rounds)
    assert found["blind"] == ([["round/0/agent/1"], ["round/0/agent/0"]], "plateau", 1)
    assert found["answered"] == ([[], []], "plateau", 2), "A's opening has nothing before it"
