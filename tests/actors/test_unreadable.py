"""An ask whose reply could not be read names the cure; and what the record keeps of how replies were read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from houses import make_spec, same_for_all
from test_agent import KeepingSink

from moot.actors.agent import Agent
from moot.actors.models.interface import Capabilities, ModelReply
from moot.actors.models.reply_schema import ReplySchema
from moot.actors.roles import RoleBinding, Roles
from moot.protocols.messages import Ask, Decoding, Message, Usage
from moot.protocols.templates import Templates

ASK = Ask(
    case_id="c",
    attempt=0,
    path="a",
    role="agent/0",
    template="say",
    slots={},
    reply="moot.protocols.replies:Position",
    labels=("Yes", "No"),
)
TEMPLATES = {
    "say": "{% block system %}{% endblock %}{% block user %}say{% endblock %}",
    "reask": "{% block system %}{% endblock %}{% block user %}{{ error }}{% endblock %}",
}


class ScriptedModel:
    """Gives one reply after the other; keeps what it was sent."""

    name = "scripted"

    def __init__(self, replies: Sequence[ModelReply], capabilities: Capabilities) -> None:
        self._replies = list(replies)
        self.capabilities = capabilities
        self.sent: list[str] = []

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        self.sent.append(messages[-1].content)
        return self._replies.pop(0)

    async def check(self) -> None:
        """It can be used."""

    async def close(self) -> None:
        """It holds nothing."""


def replied(text: str, finish: str = "stop", **more: Any) -> ModelReply:
    return ModelReply(text, finish, Usage(1, 1), **more)


async def asked(
    tmp_path: Path, *replies: ModelReply, offers: str = "on request", structured: bool | None = None, **agent: Any
) -> tuple[Any, KeepingSink, ScriptedModel]:
    """What came back, the rows that were written, and the model."""
    held: Any = offers
    model = ScriptedModel(replies, Capabilities(structured_output=held))
    spec = make_spec(tmp_path, same_for_all("simulated"), templates=TEMPLATES)
    roles = Roles({"agent": [RoleBinding(structured=structured, max_tokens=321)]})
    sink = KeepingSink()
    answered = await Agent(model, roles, Templates.from_sources(spec.templates), sink, **agent).answer(ASK)
    return answered, sink, model


TORN = replied('{"answer": "Yes", "reasoning": "It r', "length")
FREE = replied("I think so")


async def test_a_truncated_reply_is_called_that(tmp_path: Path) -> None:
    answered, sink, model = await asked(tmp_path, TORN, TORN)
    assert (answered.outcome, answered.failure) == ("failed", "unparsable")
    assert answered.error == sink[-1]["error"]
    assert "max_tokens=321" in answered.error
    assert "Field required" not in answered.error
    assert "Field required" in model.sent[1], "what the model is told stays what it was, for records to be replayed"


async def test_a_misfit_is_said_in_plain_words_and_the_model_is_told_as_ever(tmp_path: Path) -> None:
    misfit = replied('{"answer": "Yes", "reasoning": "r", "confidence": "sure"}')
    answered, sink, model = await asked(tmp_path, misfit, misfit)
    assert "`confidence`: expected a number, not 'sure'" in answered.error
    assert "Input should be a valid number" in model.sent[1]
    assert model.sent[1] == sink[0]["error"], "what the first row keeps is told again after a crash"


async def test_a_reply_that_was_all_reasoning_is_truncated(tmp_path: Path) -> None:
    answered, _, _ = await asked(tmp_path, *[replied("", "length", reasoning="It rained")] * 2)
    assert "max_tokens=321" in answered.error
    assert "reasoning" in answered.error


@pytest.mark.parametrize(
    ("offers", "structured", "named"),
    [
        ("on request", None, True),
        ("yes", False, True),
        ("yes", None, False),
        ("on request", True, False),
        ("no", None, False),
    ],
)
async def test_an_unreadable_reply_that_was_left_free_names_the_flag(
    tmp_path: Path, offers: str, structured: bool | None, named: bool
) -> None:
    answered, _, _ = await asked(tmp_path, FREE, FREE, offers=offers, structured=structured)
    assert ("--structured on" in answered.error) is named


async def test_how_a_reply_was_read_is_on_record(tmp_path: Path) -> None:
    def position(answer: str) -> str:
        return json.dumps({"answer": answer, "reasoning": "r", "confidence": 0.5})

    for reply, expected in (
        (replied(position("No")), None),
        (replied(position("No, it was moved")), "prefix"),
        (replied(position("No"), from_reasoning=True), "reasoning"),
    ):
        answered, sink, _ = await asked(tmp_path, reply)
        assert (answered.answer, sink[-1]["answer"], sink[-1]["reading"]) == ("No", "No", expected)


async def test_reasoning_is_recorded_when_asked(tmp_path: Path) -> None:
    reply = replied('{"answer": "No", "reasoning": "r", "confidence": 0.5}', reasoning="It rained")
    for saved, expected in ((False, None), (True, "It rained")):
        _, sink, _ = await asked(tmp_path, reply, save_reasoning=saved)
        assert sink[-1]["reasoning"] == expected
        assert "It rained" not in sink[-1]["text"]
