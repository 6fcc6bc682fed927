"""Calls of the simulated model as the package's templates make them, and what its replies say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.interface import ModelReply
from moot.actors.models.simulated.model import SimulatedModel, SimulatedSettings
from moot.protocols.messages import Message
from moot.protocols.replies import Position, parse_reply
from moot.protocols.templates import Templates

TEMPLATES = Templates()
LABELS = ("Yes", "No")
PASSAGE = (
    "Penguins are birds that live mostly in the southern hemisphere. They cannot fly, because their wings became "
    "flippers. Emperor penguins dive to 500 metres. Many colonies begin on sea ice."
)


def question(number: int) -> str:
    return f"is statement number {number} about penguins true"


def model(seed: int = 7, key: AnswerKey | None = None, **settings: float) -> SimulatedModel:
    return SimulatedModel(SimulatedSettings.model_validate(settings), seed, key)


@cache
def opening(text: str, labels: tuple[str, ...] | None = LABELS, choices: tuple[str, ...] = ()) -> Sequence[Message]:
    slots = {"question": text, "labels": labels, "choices": choices, "passage": PASSAGE, "title": ""}
    return TEMPLATES.render("selene/opening", slots)


def revision(
    text: str, own: tuple[str, float], others: Sequence[tuple[str, float]], labels: tuple[str, ...] = LABELS
) -> Sequence[Message]:
    return _revision(text, own, tuple(others), labels)


@cache
def _revision(
    text: str, own: tuple[str, float], others: tuple[tuple[str, float], ...], labels: tuple[str, ...]
) -> Sequence[Message]:
    shown = [
        {"name": f"agent {place}", "answer": answer, "reasoning": "Because.", "confidence": confidence}
        for place, (answer, confidence) in enumerate(others)
    ]
    slots = {
        "question": text,
        "labels": labels,
        "choices": (),
        "passage": PASSAGE,
        "round": 1,
        "own": {"answer": own[0], "reasoning": "Because.", "confidence": own[1]},
        "others": shown,
    }
    return TEMPLATES.render("selene/revision", slots)


def judging(candidate: str, evidence: Sequence[str], rationale: str = "") -> Sequence[Message]:
    slots = {
        "question": "can emperor penguins dive to 500 metres",
        "candidate": candidate,
        "candidate_text": candidate,
        "rationale": rationale,
        "evidence": evidence,
    }
    return TEMPLATES.render("selene/judge", slots)


def position(reply: ModelReply, labels: tuple[str, ...] | None = LABELS) -> dict[str, Any]:
    parsed = parse_reply(reply.text, Position, labels)
    assert not parsed.repaired
    return parsed.data
