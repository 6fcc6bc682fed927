"""Calls of the simulated model with messages rendered by the package's templates, and its parsed replies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel

from moot.actors.models.interface import ModelReply
from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.model import SimulatedModel, SimulatedSettings
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Position
from moot.protocols.reply_parsing import parse_reply
from moot.protocols.templates import Templates

TEMPLATES = Templates()
WHOLE = Decoding(max_tokens=4_000, temperature=0.3)
COLD = Decoding(max_tokens=4_000, temperature=0.0)
M = TypeVar("M", bound=BaseModel)
LABELS = ("Yes", "No")
PASSAGE = (
    "Penguins are birds that live mostly in the southern hemisphere. They cannot fly, because their wings became "
    "flippers. Emperor penguins dive to 500 metres. Many colonies begin on sea ice."
)


def question(number: int) -> str:
    return f"is statement number {number} about penguins true"


def model(seed: int = 7, key: AnswerKey | None = None, **settings: float) -> SimulatedModel:
    return SimulatedModel(SimulatedSettings.model_validate(settings), seed, key)


def says(
    kind: type[M],
    messages: Sequence[Message],
    step: object = "k",
    decoding: Decoding = WHOLE,
    *,
    key: AnswerKey | None = None,
    labels: tuple[str, ...] | None = None,
    **settings: Any,
) -> M:
    """Parsed reply of the model, which must be complete and valid without repair."""
    reply = model(7, key, **settings).reply(messages, decoding, str(step))
    assert reply.finish_reason == "stop"
    parsed = parse_reply(reply.text, kind, labels)
    assert not parsed.repaired
    return kind.model_validate(parsed.data)


_MATERIAL = {"choices": (), "passage": PASSAGE, "title": ""}


@cache
def opening(text: str, labels: tuple[str, ...] | None = LABELS) -> Sequence[Message]:
    return TEMPLATES.render("selene/opening", _MATERIAL | {"question": text, "labels": labels})


def revision(text: str, own: tuple[str, float], others: Sequence[tuple[str, float]]) -> Sequence[Message]:
    return _revision(text, own, tuple(others))


@cache
def _revision(text: str, own: tuple[str, float], others: tuple[tuple[str, float], ...]) -> Sequence[Message]:
    def shown(said: tuple[str, float], **more: str) -> dict[str, Any]:
        return {"answer": said[0], "reasoning": "Because.", "confidence": said[1]} | more

    named = [shown(said, name=f"agent {place}") for place, said in enumerate(others)]
    slots = {"question": text, "labels": LABELS, "round": 1, "own": shown(own), "others": named}
    return TEMPLATES.render("selene/revision", _MATERIAL | slots)


def stating(level: float | None, messages: Sequence[Message]) -> Sequence[Message]:
    """The messages with a level of contentiousness in the system text."""
    if level is None:
        return messages
    system, *rest = messages
    return [Message("system", f"{system.content}\nYour contentiousness is {level}."), *rest]


def concession_rate(level: float | None = None, confidence: float = 0.8, count: int = 300, **settings: float) -> float:
    """Share of agents that adopt the answer that two others give with a confidence."""
    simulated, yielded = model(7, None, **settings), 0
    for number in range(count):
        messages = revision(question(number), ("Yes", 0.7), [("No", confidence)] * 2)
        yielded += position(simulated.reply(stating(level, messages), Decoding(), str(number)))["answer"] == "No"
    return yielded / count


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
