"""An agent that is asked the same thing twice, what an ask may have cost, and how replies are read that do not fit."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from small_runs import make_spec, same_model_roles

from moot.actors.agent.agent import Agent
from moot.actors.agent.roles import RoleBinding, Roles
from moot.actors.limits.budget_account import BudgetAccount
from moot.actors.limits.envelopes import Grant, UsageReport
from moot.actors.limits.limiter import Limiter
from moot.actors.limits.limiter_client import LimiterClient
from moot.actors.models.interface import Capabilities, ModelError, ModelReply, ReplySchema
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.rows import batch_of, merge_reasks, recorded_replies
from moot.protocols.messages import Ask, Decoding, Event, Message, Usage
from moot.protocols.templates import Templates


class GatedModel:
    """Answers once the gate is open; counts calls and cancellations."""

    name = "gated"
    capabilities = Capabilities()

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.calls = 0
        self.cancelled = 0
        self.fails_with: ModelError | None = None
        self.replies = [ModelReply("a text", "stop", Usage(1, 1))] * 9
        self.sent: list[str] = []

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        self.calls += 1
        self.sent.append(messages[-1].content)
        if self.fails_with is not None:
            raise self.fails_with
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.replies.pop(0)

    async def check(self) -> None:
        """It can be used."""

    async def close(self) -> None:
        """It holds nothing."""


class KeepingSink(list[dict[str, Any]]):
    """Keeps the rows, and the events apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        self.append(columns)

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        assert (case_id, attempt) == ("c", 0)
        self.events.append(event)


@pytest.fixture
async def model() -> GatedModel:
    return GatedModel()


@pytest.fixture
def sink() -> KeepingSink:
    return KeepingSink()


@pytest.fixture
def agent(model: GatedModel, sink: KeepingSink, tmp_path: Path) -> Agent:
    spec = make_spec(tmp_path, same_model_roles("simulated"), templates=TEMPLATES)
    return Agent(model, Roles(spec.roles), Templates.from_sources(spec.templates), sink)


TEMPLATES = {
    "say": "{% block system %}{% endblock %}{% block user %}say{% endblock %}",
    "reask": "{% block system %}{% endblock %}{% block user %}{{ error }}{% endblock %}",
}


def _ask(path: str = "a") -> Ask:
    reply = "moot.protocols.replies:FreeText"
    return Ask(case_id="c", attempt=0, path=path, role="agent/0", template="say", slots={}, reply=reply)


async def _started(agent: Agent, ask: Ask) -> asyncio.Task[Any]:
    task = asyncio.create_task(agent.answer(ask))
    await asyncio.sleep(0.01)
    return task


async def test_the_same_ask_is_joined_and_paid_once(agent: Agent, model: GatedModel, sink: KeepingSink) -> None:
    tasks = [await _started(agent, _ask()) for _ in range(3)]
    other = await _started(agent, _ask("b"))
    model.gate.set()
    answers = [await task for task in tasks]
    assert len({answered.reply_id for answered in answers}) == 1
    assert (await other).reply_id != answers[0].reply_id
    assert (model.calls, len(sink)) == (2, 2)


async def test_cancelling_the_only_asker_cancels_the_call(agent: Agent, model: GatedModel, sink: KeepingSink) -> None:
    task = await _started(agent, _ask())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.calls, model.cancelled, len(sink)) == (1, 1, 0)
    (event,) = sink.events
    assert (event.kind, event.path, event.data["why"], event.data["attempts"]) == ("abandoned", "a", "cancelled", 1)
    assert event.data["tokens_at_most"] >= 400, "what was cancelled may have been billed"


async def test_a_refused_ask_reports_the_possible_cost_of_its_earlier_attempts(
    sink: KeepingSink, tmp_path: Path
) -> None:
    spec = make_spec(tmp_path, same_model_roles("simulated"), templates=TEMPLATES, retry=RetryPolicy(base_s=0.0))
    model = GatedModel()
    model.fails_with = ModelError("connection", "the reply was cut off", may_be_billed=True)
    limiter = Limiter({}, {"tokens": BudgetAccount(700.0)}, clock=time.monotonic)

    async def exchange(report: UsageReport) -> Grant:
        return limiter.exchange(report)

    limiter_client = LimiterClient({}, ["tokens"], exchange)
    agent = Agent(
        model,
        Roles(spec.roles),
        Templates.from_sources(spec.templates),
        sink,
        retry=spec.retry,
        limiter_client=limiter_client,
    )
    answered = await agent.answer(_ask())
    await limiter_client.close()
    assert (answered.outcome, answered.failure, len(sink), model.calls) == ("unpaid", "budget", 0, 1)
    (event,) = sink.events
    assert (event.data["why"], event.data["attempts"]) == ("budget", 1)
    assert 400 <= event.data["tokens_at_most"] <= 700


@pytest.mark.parametrize("billed", [True, False])
async def test_an_ask_that_the_server_refuses_to_work_on_is_free(agent: Agent, model: GatedModel, billed: bool) -> None:
    model.fails_with = ModelError("request", "no such parameter", may_be_billed=billed)
    answered = await agent.answer(_ask())
    assert (answered.failure, answered.usage, answered.free) == ("request", Usage(), not billed)


@pytest.mark.parametrize(("billed", "usage"), [(False, Usage(3, 1)), (True, Usage())])
async def test_a_refused_second_ask_leaves_the_usage_of_the_first(
    billed: bool, usage: Usage, agent: Agent, model: GatedModel, sink: KeepingSink
) -> None:
    model.replies = [ModelReply("", "stop", Usage(3, 1))]
    asked = await _started(agent, _ask())
    model.fails_with = ModelError("request", "no such parameter", may_be_billed=billed)
    model.gate.set()
    answered = await asked
    recorded = merge_reasks([reply for _, _, reply in recorded_replies(batch_of("replies", sink))])["a"].answered
    for found in (answered, recorded):
        assert (found.failure, found.usage, found.free) == ("request", usage, False)


async def test_who_joined_is_answered_even_if_the_first_asker_gives_up(
    agent: Agent, model: GatedModel, sink: KeepingSink
) -> None:
    first, *joined = [await _started(agent, _ask()) for _ in range(3)]
    first.cancel()
    await asyncio.sleep(0.01)
    model.gate.set()
    answers = [await task for task in joined]
    assert first.cancelled()
    assert len({answered.reply_id for answered in answers}) == 1
    assert (model.calls, model.cancelled, len(sink)) == (2, 1, 1)


async def test_cancelling_who_joined_leaves_the_first_alone(agent: Agent, model: GatedModel) -> None:
    first, second = [await _started(agent, _ask()) for _ in range(2)]
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    model.gate.set()
    assert (await first).text == "a text"
    assert (model.calls, model.cancelled) == (1, 0)


async def test_an_error_in_a_reply_model_ends_the_ask_visibly(
    agent: Agent, model: GatedModel, sink: KeepingSink
) -> None:
    model.gate.set()
    ask = Ask(case_id="c", attempt=0, path="a", role="agent/0", template="say", slots={}, reply="test_agent:Nothing")
    answered = await agent.answer(ask)
    assert (answered.outcome, answered.failure) == ("failed", "unsent")
    assert sink[0]["failure"] == "unsent"


ASK = Ask(
    case_id="c", attempt=0, path="a", role="agent/0", template="say", slots={},
    reply="moot.protocols.replies:Position", labels=("Yes", "No"),
)  # fmt: skip


def replied(text: str, finish: str = "stop", **more: Any) -> ModelReply:
    return ModelReply(text, finish, Usage(1, 1), **more)


async def asked(
    *replies: ModelReply, offers: Any = "on request", structured: bool | None = None, **settings: Any
) -> tuple[Any, KeepingSink, GatedModel]:
    """What came back, the rows that were written, and the model, which gives one reply after the other."""
    model, sink = GatedModel(), KeepingSink()
    model.capabilities, model.replies = Capabilities(structured_output=offers), list(replies)
    model.gate.set()
    roles = Roles({"agent": [RoleBinding(structured=structured, max_tokens=321)]})
    agent = Agent(model, roles, Templates.from_sources(Templates().sources | TEMPLATES), sink, **settings)
    return await agent.answer(ASK), sink, model


TORN = replied('{"answer": "Yes", "reasoning": "It r', "length")
MISFIT = replied('{"answer": "Yes", "reasoning": "r", "confidence": "sure"}')
FREE = replied("I think so")


@pytest.mark.parametrize(
    ("reply", "said", "told"),
    [
        (TORN, ["max_tokens=321"], "Field required"),
        (MISFIT, ["`confidence`: expected a number, not 'sure'"], "Input should be a valid number"),
        (
            replied("", "length", reasoning="It rained"),
            ["max_tokens=321", "reasoning"],
            "the reply holds no JSON object",
        ),
    ],
)
async def test_a_misfit_is_reported_in_plain_words_and_reaches_the_model_unchanged(
    reply: ModelReply, said: list[str], told: str
) -> None:
    """The content of the first row is used again after a crash, and records are replayed."""
    answered, sink, model = await asked(reply, reply)
    assert (answered.outcome, answered.failure, answered.error) == ("failed", "unparsable", sink[-1]["error"])
    assert all(words in answered.error for words in said)
    assert told in model.sent[1]
    assert told not in answered.error
    assert model.sent[1] == sink[0]["error"]


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
    offers: str, structured: bool | None, named: bool
) -> None:
    answered, _, _ = await asked(FREE, FREE, offers=offers, structured=structured)
    assert ("--structured on" in answered.error) is named


async def test_how_a_reply_was_read_is_on_record() -> None:
    def position(answer: str) -> str:
        return json.dumps({"answer": answer, "reasoning": "r", "confidence": 0.5})

    for reply, expected in (
        (replied(position("No")), None),
        (replied(position("No, it was moved")), "prefix"),
        (replied(position("No"), from_reasoning=True), "reasoning"),
    ):
        answered, sink, _ = await asked(reply)
        assert (answered.answer, sink[-1]["answer"], sink[-1]["reading"]) == ("No", "No", expected)


async def test_reasoning_is_recorded_when_asked() -> None:
    reply = replied('{"answer": "No", "reasoning": "r", "confidence": 0.5}', reasoning="It rained")
    for saved, expected in ((False, None), (True, "It rained")):
        _, sink, _ = await asked(reply, save_reasoning=saved)
        assert sink[-1]["reasoning"] == expected
        assert "It rained" not in sink[-1]["text"]
