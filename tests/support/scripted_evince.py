"""Scripted debates of EVINCE: the printed jaundice case, statements of the sides, and readings of the judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripted_floor import Script, ScriptedFloor

from moot.protocols.case import Case
from moot.protocols.messages import Verdict
from moot.protocols.registry import make_protocol

HCV, HBV, CIRRHOSIS, OBSTRUCTIVE, FAILURE, ALCOHOLIC, HAV = JAUNDICE = (
    "Hepatitis C", "Hepatitis B", "Cirrhosis", "Obstructive jaundice", "Acute liver failure", "Alcoholic hepatitis",
    "Hepatitis A",
)  # fmt: skip
FIRST_A = {HCV: 0.40, HBV: 0.30, CIRRHOSIS: 0.15, OBSTRUCTIVE: 0.10, FAILURE: 0.05}
FIRST_B = {HBV: 0.35, HCV: 0.25, OBSTRUCTIVE: 0.20, ALCOHOLIC: 0.15, HAV: 0.05}
THIRD_A = {HCV: 0.35, HBV: 0.25, CIRRHOSIS: 0.20, OBSTRUCTIVE: 0.15, FAILURE: 0.05}
THIRD_B = {HCV: 0.35, HBV: 0.30, CIRRHOSIS: 0.20, OBSTRUCTIVE: 0.10, FAILURE: 0.05}
CASE = Case(id="j", question="Which illness?", labels=JAUNDICE, passage="Yellow skin, mild fever, fatigue.")


def says(distribution: Mapping[str, float], *arguments: str, rebuttals: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "distribution": list(distribution.items()),
        "arguments": arguments or ("The skin is yellow.",),
        "rebuttals": rebuttals,
    }


def reads(mark: float, reason: str = "The skin is yellow.") -> dict[str, Any]:
    """A judge's reading with the score `mark / 10`."""
    reasons = [{"text": reason, "validity": mark, "credibility": 5}]
    return {"claim": "c", "reasons": reasons, "rivals": [], "justification": "so", "reflection": "else"}


JUDGED: Script = {"crit/*": reads(8)}
TURNS = tuple(f"round/{number}/agent/{i}" for number in (0, 1) for i in (0, 1))


async def debate(script: Script, case: Case = CASE, judges: int = 1, **settings: Any) -> tuple[Verdict, ScriptedFloor]:
    floor = ScriptedFloor(case, script, judges=judges)
    verdict = await make_protocol("evince", {"follow_ups": "never", **settings}).run(case, floor)
    return verdict, floor


PRINTED: Script = {
    "round/0/agent/0": says(FIRST_A),
    "round/0/agent/1": says(FIRST_B),
    "round/1/agent/0": says(FIRST_B),
    "round/1/agent/1": says(FIRST_A),
    "round/2/agent/0": says(THIRD_A),
    "round/2/agent/1": says(THIRD_B),
    "round/3/agent/0": says(THIRD_A),
    "round/3/agent/1": says(THIRD_A),
    **JUDGED,
}
