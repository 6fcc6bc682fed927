"""Floor of one debate: answers asks from the journal, then from a reused run, then by the agent pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel

from moot.actors.agent.request_fingerprint import reask_messages, render_messages
from moot.actors.debate.context import DebateContext, Lookups
from moot.actors.debate.first_asks import NothingUsable
from moot.actors.debate.outcomes import decision_columns, decision_id, judgment_of, turn_of
from moot.actors.debate.shared_replies import SharedReplies
from moot.actors.limits.limiter_client import Draining
from moot.actors.models.usage_totals import UsageTotals
from moot.actors.record.recovery import History
from moot.actors.record.schema import ASKED
from moot.protocols.case import Case, Image
from moot.protocols.errors import UNSENT, AskFailed, PathReused
from moot.protocols.events import DebateEvent, as_event
from moot.protocols.floor import Brief, Request
from moot.protocols.messages import (
    Ask,
    AskResult,
    Decision,
    Decoding,
    Event,
    Failure,
    Form,
    Judgment,
    Message,
    Missing,
    Slots,
    Turn,
    Usage,
)
from moot.protocols.replies import DecisionReply, Score
from moot.protocols.reply_ids import reply_id

R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")

_LAST_SAMPLE = 2**31 - 1
"""Bound of the column `sample`."""


class Parked(BaseException):
    """The debate waits for a person: it is parked, and runs again once there is a decision.

    Not an `Exception`, so that no protocol catches it by accident.

    Args:
        path: of the step that waits.
        form: of the decision.
    """

    def __init__(self, path: str, form: Form) -> None:
        super().__init__(path, form)
        self.path, self.form = path, form


class RunStopping(BaseException):
    """An ask was not made because the run is stopping: the debate is cancelled, and resumes with the run.

    Not an `Exception`, so that no protocol catches it by accident. `str()` says why.
    """


class CaseFloor(Lookups):
    """Floor of one debate; the same class in every runtime.

    Args:
        case: the case.
        attempt: 0, or higher after `--retry-failed`.
        context: the process's shared services.
        history: recorded part of the debate, if it has run before.
        decided: decisions of a person since then, by path.
        paid: usage by model; the calls of this floor are added.
    """

    def __init__(
        self,
        case: Case,
        attempt: int,
        context: DebateContext,
        history: History | None = None,
        decided: Mapping[str, Decision] | None = None,
        paid: dict[str, UsageTotals] | None = None,
    ) -> None:
        history = history or History()
        super().__init__(case, attempt, context, history.vectors)
        self.seed = int.from_bytes(
            blake2b(f"{context.seed}/{case.id}/{attempt}".encode(), digest_size=8).digest(), "big"
        )
        self._traceparent = context.telemetry.tracer.traceparent(case.id, attempt)
        self._history = history
        self._decided = decided or {}
        self._recorded = {reply.path: reply for reply in history.replies}
        self._reuse = context.reuse.for_debate(context.record, history) if context.reuse else None
        self._asks: dict[str, Ask] = {}
        self._reasked: dict[str, tuple[str, str]] = {}
        self.replies: dict[str, str] = {}
        self.prompt_cut = False
        self.usage: dict[str, UsageTotals] = {}
        self._paid = {} if paid is None else paid

    async def ask(
        self,
        role: str,
        template: str,
        slots: Slots,
        *,
        reply: type[R],
        path: str,
        sample: int = 0,
        images: Sequence[Image] = (),
        decoding: Decoding | None = None,
    ) -> Turn[R]:
        """See `Floor.ask`."""
        request = Request(role, template, slots, reply, path, sample, images, decoding)
        return _answered(await self._request(self._ask(request), reply))

    async def ask_all(self, requests: Sequence[Request[R]]) -> list[Turn[R] | Failure]:
        """See `Floor.ask_all`."""
        asks = [self._ask(request) for request in requests]
        waiting = [self._request(ask, r.reply) for ask, r in zip(asks, requests, strict=True)]
        return await _gather_or_cancel(waiting)

    async def judge(
        self, brief: Brief, *, path: str, variants: Sequence[Slots] = ({},), passes: int = 1
    ) -> list[Judgment | Missing]:
        """See `Floor.judge`."""
        places = [
            (judge, number, pass_index)
            for judge in self.panel(brief.role)
            for number in range(len(variants))
            for pass_index in range(passes)
        ]
        requests = [
            Request(
                role=judge,
                template=brief.template,
                slots={**brief.slots, **variants[number]},
                reply=Score,
                path=f"{path}/{judge}/variant/{number}/pass/{pass_index}",
                sample=pass_index,
            )
            for judge, number, pass_index in places
        ]
        outcomes = await self.ask_all(requests)
        return [judgment_of(outcome, *place) for outcome, place in zip(outcomes, places, strict=True)]

    def panel(self, role: str = "judge") -> list[str]:
        """See `Floor.panel`."""
        return self._context.roles.panel(role)

    async def consult(self, form: Form, *, path: str) -> Decision:
        """See `Floor.consult`."""
        ask = self._ask(Request("person", "consult", msgspec.to_builtins(form), DecisionReply, path))
        known = self._replay(ask)
        if known is not None and known.data is not None:
            return Decision(known.data["action"], known.data.get("text", ""), known.data.get("by", "person"))
        decided = self._decided.get(path)
        if decided is None and self._context.attended:
            self.note(Event("parked", path, msgspec.to_builtins(form)))
            raise Parked(path, form)
        decision = decided or Decision("go on", by="unattended")
        self._context.record.put_reply(self.case.id, decision_columns(ask, decision))
        self.replies[path] = decision_id(ask)
        if decided is not None:  # durable before anything is paid for that depends on it
            await self._context.record.history(self.case.id, self.attempt)
        return decision

    async def compute(self, function: Callable[..., T], *args: Any) -> T:
        """See `Floor.compute`."""
        return await asyncio.to_thread(function, *args)

    async def shared(self, key: str, request: Request[R]) -> Turn[R]:
        """See `Floor.shared`."""
        (outcome,) = await self.shared_all([(key, request)])
        return _answered(outcome)

    async def shared_all(self, requests: Sequence[tuple[str, Request[R]]]) -> list[Turn[R] | Failure]:
        """See `Floor.shared_all`."""
        asks = [(key, self._ask(request), request.reply) for key, request in requests]
        return await _gather_or_cancel([self._shared(*ask) for ask in asks])

    async def sent(self, turn: Turn[Any]) -> tuple[Message, ...]:
        """See `Floor.sent`."""
        ask, templates = self._asks[turn.path], self._context.templates
        messages = await render_messages(ask, templates, self._context.roles.binding(ask.role))
        reasked = self._reasked.get(turn.path)
        return reask_messages(messages, *reasked, templates) if reasked else messages

    def note(self, event: Event | DebateEvent) -> None:
        """See `Floor.note`. Raises TypeError when the event's data is not JSON-like, such as NumPy values."""
        noted = as_event(event)
        msgspec.to_builtins(noted.data)
        self._context.record.put_event(self.case.id, self.attempt, noted)

    def _ask(self, request: Request[Any]) -> Ask:
        if request.path in self._asks:
            raise PathReused(f"case {self.case.id}: the path {request.path!r} was used twice")
        if not 0 <= request.sample <= _LAST_SAMPLE:
            raise ValueError(f"{request.path!r}: sample {request.sample} is not in [0, {_LAST_SAMPLE:,}]")
        template, plain = self._context.form_of(request.role, request.template, request.reply)
        ask = Ask(
            case_id=self.case.id,
            attempt=self.attempt,
            path=request.path,
            role=request.role,
            template=template,
            slots=dict(request.slots),
            reply=reply_id(request.reply),
            labels=self.case.labels,
            choices=self.case.choices,
            aliases=self.case.aliases,
            sample=request.sample,
            images=tuple(request.images),
            decoding=request.decoding,
            plain=plain,
            traceparent=self._traceparent,
        )
        self._asks[request.path] = ask
        return ask

    def _replay(self, ask: Ask) -> AskResult | None:
        recorded = self._recorded.get(ask.path)
        return recorded.answered if recorded else None

    async def _request(self, ask: Ask, reply: type[R]) -> Turn[R] | Failure:
        binding = self._context.roles.binding(ask.role)
        ask = msgspec.structs.replace(await self._context.fingerprinted(ask), seconds_left=binding.timeout_s)
        recorded = self._recorded.get(ask.path)
        if recorded is not None and recorded.fingerprint in ask.fingerprints:
            answered = recorded.answered
        else:
            if recorded is not None:
                ask = msgspec.structs.replace(ask, supersedes=recorded.answered.reply_id)
                self.note(Event("superseded", ask.path, {"reply_id": recorded.answered.reply_id}))
            answered = await self._pay(self._history.resume(ask))
        self._count(answered)
        return turn_of(answered, ask.role, reply, ask.path)

    async def _shared(self, key: str, ask: Ask, reply: type[R]) -> Turn[R] | Failure:
        answered = await SharedReplies(self._context, self._pay).reply(key, ask)
        self.prompt_cut |= answered.prompt_cut
        if answered.reasked:
            self._reasked[ask.path] = answered.reasked
        return turn_of(answered, ask.role, reply, ask.path)

    async def _pay(self, ask: Ask) -> AskResult:
        if self._reuse is not None and (reused := await self._reuse.answer(ask)) is not None:
            return reused
        try:
            async with self._context.first_asks.admitted(ask.role) as admitted:
                answered = admitted.result = await self._ask_agents(ask)
        except NothingUsable as why:
            raise RunStopping(f"{why.kind}: {why}") from None
        return answered

    async def _ask_agents(self, ask: Ask) -> AskResult:
        if self._context.drain.is_set():
            await _wait_for_cancellation()
        self._context.record.put_event(ask.case_id, ask.attempt, Event(ASKED, ask.path))
        asking = self._context.in_flight
        asking.count += 1
        try:
            answered = await self._context.agents.answer(ask)
        finally:
            asking.count -= 1
        if answered.outcome == "unpaid":
            if answered.failure == Draining.kind or self._context.drain.is_set():
                await _wait_for_cancellation()
            raise RunStopping(f"{answered.failure}: {answered.error}")
        if not answered.free:
            usage = answered.usage
            self._paid.setdefault(answered.model, UsageTotals()).add(usage.prompt_tokens, usage.completion_tokens)
        return answered

    def _count(self, answered: AskResult) -> None:
        self.replies[answered.path] = answered.reply_id
        self.prompt_cut |= answered.prompt_cut
        if answered.reasked:
            self._reasked[answered.path] = answered.reasked
        if answered.failure == UNSENT:
            return
        usage = Usage(0, 0) if answered.free else answered.usage
        complete = not answered.stopped and not self._history.has_cuts(answered.path)
        totals = self.usage.setdefault(answered.model, UsageTotals())
        totals.add(usage.prompt_tokens, usage.completion_tokens, complete=complete)


def _answered(outcome: Turn[R] | Failure) -> Turn[R]:
    if isinstance(outcome, Failure):
        raise AskFailed(outcome.path, outcome.kind, outcome.message)
    return outcome


async def _wait_for_cancellation() -> None:
    """Waits until the moderator cancels the debate."""
    await asyncio.Event().wait()


async def _gather_or_cancel(waiting: Sequence[Any]) -> list[Any]:
    """Gathers all results in order; if one raises, the others are cancelled and awaited before it is re-raised."""
    if len(waiting) == 1:
        return [await waiting[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in waiting]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]
