"""Debate that a person may moderate: topics first, then a form after each round, and again after each change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from short_protocols import template

from moot.actors.debate.pending_decisions import Consultation
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Decision, Event, Failure, Form, Turn, Verdict
from moot.protocols.replies import FreeText

ROUNDS = 3
ACTIONS = ("go on", "set kappa", "ask", "edit topics", "end")


class ModeratedDebate(DebateProtocol):
    """Two sides argue; what the person sets, asks and edits is sent to both in the next round."""

    name = "moderated"
    roles = ("agent",)
    templates = {  # noqa: RUF012 - as protocols of users have it
        "moderated/topics": template("topics", "Name topics.", "{{ question | fenced('question') }}"),
        "moderated/argue": template(
            "argue",
            "Argue with contentiousness {{ kappa }}.",
            "{{ question | fenced('question') }} {{ topics | fenced('topics') }} {{ asked | fenced('asked') }}",
        ),
    }

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        slots = {"question": case.question}
        proposed = await floor.ask("agent/0", "moderated/topics", slots, reply=FreeText, path="topics")
        state: dict[str, Any] = {"kappa": 0.9, "asked": [], "topics": proposed.text, "ended": False}
        await _moderate(floor, "Topics", state, "moderation/topics", ("go on", "edit topics"))
        number = 0
        for number in range(1, ROUNDS + 1):
            said = state | {"asked": " ".join(state["asked"])}
            asks = [
                Request(f"agent/{i}", "moderated/argue", slots | said, FreeText, f"round/{number}/agent/{i}")
                for i in range(2)
            ]
            heard = [_text(turn) for turn in await floor.ask_all(asks)]
            numbers = {"round": number, "kappa": state["kappa"], "crit": {"agent/0": 0.625, "agent/1": None}}
            floor.note(Event("round", f"round/{number}", numbers))
            state["asked"] = []
            await _moderate(floor, f"Round {number}", state, f"moderation/round/{number}", ACTIONS, heard[-1])
            if state["ended"]:
                break
        kept = {key: state[key] for key in ("kappa", "topics", "ended")}
        return Verdict(answer=None, how="ended" if state["ended"] else "t_max", rounds=number, payload=kept)


class PartlyModerated(ModeratedDebate):
    """Like `ModeratedDebate`, but cases called `plain` consult nobody."""

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        if not case.id.startswith("plain"):
            return await super().run(case, floor)
        turn = await floor.ask(
            "agent/0", "moderated/topics", {"question": case.question}, reply=FreeText, path="topics"
        )
        return Verdict(answer=None, how="plain", payload={"text": turn.text})


def _text(turn: Turn[FreeText] | Failure) -> str:
    return turn.message if isinstance(turn, Failure) else turn.text


async def _moderate(
    floor: Floor, title: str, state: dict[str, Any], path: str, actions: tuple[str, ...], last: str = ""
) -> None:
    """Ask for decisions, again after each change, until the person continues or ends the debate."""
    remark, place, again = "", path, 0
    while True:
        body = "\n".join(filter(None, [remark, last, f"kappa {state['kappa']}", "Topics:", state["topics"]]))
        needs = tuple(action for action in actions if action in ("set kappa", "ask"))
        form = Form(title, body, actions, needs, {"edit topics": state["topics"]})
        decision = await floor.consult(form, path=place)
        if decision.action == "go on":
            return
        try:
            _change(state, decision)
            remark = f"Done: {decision.action}."
        except ValueError:
            remark = f"Not used: {decision.text!r} is not a number from 0 to 1."
        if state["ended"]:
            return
        again += 1
        place = f"{path}/{again}"


def _change(state: dict[str, Any], decision: Decision) -> None:
    if decision.action == "end":
        state["ended"] = True
    elif decision.action == "ask":
        state["asked"] = [*state["asked"], decision.text]
    elif decision.action == "edit topics":
        state["topics"] = decision.text
    else:
        kappa = float(decision.text)
        if not 0.0 <= kappa <= 1.0:
            raise ValueError(decision.text)
        state["kappa"] = kappa


SCRIPTS: dict[str, Callable[[str, str], Any]] = {
    "topics": lambda step, user: "Cost\nSafety",
    "argue": lambda step, user: f"side {step[-1]} says: {' '.join(user.split())}",
}
"""Replies of a `ScriptedServer`."""


class ScriptedPerson:
    """A person with scripted decisions by path, and `go on` elsewhere.

    Args:
        script: by path, an action, or an action and its text.

    Attributes:
        asked: (case id, path) in the order asked.
    """

    def __init__(self, script: dict[str, str | tuple[str, str] | None]) -> None:
        self._script = script
        self.asked: list[tuple[str, str]] = []

    async def decide(self, consultation: Consultation) -> Decision | None:
        """See `Person.decide`."""
        self.asked.append((consultation.case_id, consultation.path))
        said = self._script.get(consultation.path, "go on")
        if said is None:
            return None
        return Decision(said) if isinstance(said, str) else Decision(*said)


class SlowPerson:
    """A person who decides `go on` when the test permits it.

    Attributes:
        may: set to permit the decision.
        asked: set when a decision is requested.
        dismissed: number of requests that were cancelled.
    """

    def __init__(self) -> None:
        self.may, self.asked, self.dismissed = asyncio.Event(), asyncio.Event(), 0

    async def decide(self, consultation: Consultation) -> Decision | None:
        """See `Person.decide`."""
        async with self._counting():
            self.asked.set()
            await self.may.wait()
            return Decision("go on")

    @asynccontextmanager
    async def _counting(self) -> AsyncIterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            self.dismissed += 1
            raise
