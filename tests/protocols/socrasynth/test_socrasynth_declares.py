"""What SocraSynth declares to be asked for is what it asks for: each kind is a trial call that somebody pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from socrasynth_script import SUBJECT, run_scripted, speech

from moot.protocols.case import Case
from moot.protocols.messages import Slots
from moot.protocols.registry import make_protocol
from moot.protocols.replies import Reply

LISTED = Case(id="x", question="Which?", labels=("Flu", "Malaria", "Measles"))
PROPOSED = {"answer": "Flu", "points": ["P."], "questions": [], "consents": True, "reservations": []}

Kinds = set[tuple[str, type[Reply]]]


def kinds(replies: Mapping[str, Sequence[type[Reply]]]) -> Kinds:
    return {(family, reply) for family, several in replies.items() for reply in several}


async def asked(case: Case, settings: Mapping[str, Any], *answers: str) -> Kinds:
    """What a debate asks for; on a closed list one in which the sides name these answers."""

    def opening(path: str, slots: Slots) -> dict[str, Any]:
        return speech(path, slots) | ({"answer": answers[int(path[-1])]} if answers else {})

    script: dict[str, Any] = {"round/0/agent/?": opening, "joint/*": PROPOSED} if answers else {}
    floor, _ = await run_scripted(script, settings, case=case)
    return {(request.role.partition("/")[0], request.reply) for request in floor.asks.values()}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"topics.ask_balance": True},
        {"max_rounds": 0},
        {"panel": "whole"},
        {"panel": "whole", "versus_qa": True},
        {"versus_qa": True},
    ],
)
async def test_it_declares_the_replies_that_it_asks_for(settings: dict[str, Any]) -> None:
    subject = await asked(SUBJECT, settings)
    listed = await asked(LISTED, settings, "Flu", "Malaria") | await asked(LISTED, settings, "Flu", "Flu")
    protocol: Any = make_protocol("socrasynth", settings)
    assert kinds(protocol.replies_for(SUBJECT)) == subject
    assert kinds(protocol.replies_for(LISTED)) == listed
    assert kinds(protocol.replies) == subject | listed
