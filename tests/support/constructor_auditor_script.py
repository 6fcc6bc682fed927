"""Scripted constructor-auditor debates in which every request succeeds, on a case of each domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripted_floor import Script, ScriptedFloor, run_debate

from moot.protocols.case import Case, Criterion, Domain
from moot.protocols.messages import Verdict

IDEAS = Criterion(trait="Ideas", lowest=0, highest=3, guide="3: focused. 0: none.", assignment="Write on patience.")
ESSAY = Case(
    id="e",
    question="Which score does the essay deserve for Ideas?",
    labels=("0", "1", "2", "3"),
    passage="Once @PERSON1 waited two hours for the bus.",
    criterion=IDEAS,
)
PROBLEM = Case(id="p", question="Ann has 3 boxes of 12 eggs. How many eggs?", domain="mathematics")
QUESTION = Case(id="q", question="Who built the tower?", passage="The tower was built by Eiffel's company.")
CASES: Mapping[Domain, Case] = {"rubric scoring": ESSAY, "mathematics": PROBLEM, "factual QA": QUESTION}

SHEET = {
    "instruction_following": 3,
    "justification_quality": 2,
    "evidence_grounding": 3,
    "critical_flag": 0,
    "reasoning": "So.",
}
GOOD: Mapping[str, Any] = {
    "opening": {"text": "Claim: the opening."},
    "challenge": {"text": "Challenge: the challenge."},
    "assessment/*": SHEET,
}


async def run_scripted(
    case: Case = QUESTION, changes: Script | None = None, settings: Mapping[str, Any] | None = None, **floor: Any
) -> tuple[ScriptedFloor, Verdict]:
    """Run a debate with `changes` to its script."""
    good = {"synthesis": {"answer": "Eiffel", "rationale": "Both say so."}, **GOOD}
    return await run_debate("constructor-auditor", case, good, changes, settings, **floor)
