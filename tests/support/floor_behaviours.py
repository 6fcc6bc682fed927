"""Guarantees of the floor, one coroutine each: the case's title selects it, and its payload has the observations."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from short_protocols import template

from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case, Image
from moot.protocols.errors import AskFailed, QuorumFailed
from moot.protocols.floor import Brief, Floor, Request
from moot.protocols.messages import Decoding, Event, Failure, Form, Judgment, Turn, Verdict
from moot.protocols.replies import FreeText, Position, Reply

TEMPLATES = {
    "floor/echo": template("echo", "Say a word as JSON.", "{{ text | fenced('text') }}"),
    "floor/judge": template("judge", "Score it as JSON.", "{{ text | fenced('text') }}"),
    "floor/position": template("position", "Answer as JSON.", "{{ text | fenced('passage') }}"),
    "floor/plain": template("plain", "Say anything.", "{{ text }}"),
}


class Word(Reply):
    """A reply of one word."""

    word: str


SCRIPTS: dict[str, Any] = {
    "echo": lambda step, user: {"word": step.partition("/0/")[2]},
    "judge": lambda step, user: {"support": "supported", "score": len(user) % 10 / 10, "rationale": user},
    "position": lambda step, user: {"answer": "Yes", "reasoning": f"{len(user)} characters", "confidence": 0.5},
    "plain": lambda step, user: "anything",
}

WORDS = ("penguins swim in cold water", "penguins cannot fly", "the moon is far away", "penguins swim in cold water")


def _echo(path: str, role: str = "agent/0", text: str = "x", **more: Any) -> Request[Word]:
    return Request(role, "floor/echo", {"text": text}, Word, path, **more)


def _heard(turn: Turn[Word] | Failure) -> list[str]:
    if isinstance(turn, Failure):
        return ["failure", turn.path, turn.role, turn.kind]
    return ["turn", turn.path, turn.role, turn.reply.word]


async def order(case: Case, floor: Floor) -> Any:
    """Replies in the order asked though they end in reverse order; one in the middle fails."""
    asks = [_echo(f"{i}/wait-{(4 - i) * 60}") for i in range(4)]
    asks.insert(2, _echo("x/status-403"))
    return [_heard(turn) for turn in await floor.ask_all(asks)]


async def failing_ask(case: Case, floor: Floor) -> Any:
    """`ask` raises the failure that `ask_all` returns."""
    try:
        await floor.ask("agent/0", "floor/echo", {"text": "x"}, reply=Word, path="a/status-403")
    except AskFailed as failed:
        return [failed.path, failed.kind, failed.message]
    raise AssertionError("a refused ask must raise")


async def failure_kinds(case: Case, floor: Floor) -> Any:
    """Terminal failures of every kind, each returned as a value."""
    paths = ["a/status-400", "a/status-401", "a/status-413", "a/status-500", "a/unparsable", "a/status-429"]
    return {turn.path: _heard(turn)[-1] for turn in await floor.ask_all([_echo(path) for path in paths])}


async def uncaught(case: Case, floor: Floor) -> Any:
    """A failure that the protocol does not catch fails the case with its kind."""
    await floor.ask("agent/0", "floor/echo", {"text": "x"}, reply=Word, path="a/status-403")


async def path_reused(case: Case, floor: Floor) -> Any:
    """The same path twice in one debate."""
    await floor.ask("agent/0", "floor/echo", {"text": "x"}, reply=Word, path="a")
    await floor.ask("agent/0", "floor/echo", {"text": "y"}, reply=Word, path="a")


async def path_reused_at_once(case: Case, floor: Floor) -> Any:
    """The same path twice in one fan-out, together with a valid request."""
    await floor.ask_all([_echo("b"), _echo("a"), _echo("a")])


async def deadline(case: Case, floor: Floor) -> Any:
    """`agent/3` has a deadline of 2 s; only its request fails."""
    turns = await floor.ask_all([_echo("quick", "agent/2"), _echo("slow/hang", "agent/3"), _echo("other")])
    return [_heard(turn) for turn in turns]


async def repairs(case: Case, floor: Floor) -> Any:
    """A repaired reply, a re-asked one, one that stays invalid, and one after a failed attempt."""
    turns = await floor.ask_all([_echo(path) for path in ("a/repair", "a/reask", "a/unparsable", "a/flaky")])
    return [_heard(turn) for turn in turns]


async def surrogate(case: Case, floor: Floor) -> Any:
    """A reply with an unpaired surrogate is not valid text."""
    return [_heard(turn) for turn in await floor.ask_all([_echo("a/surrogate"), _echo("b")])]


async def panel(case: Case, floor: Floor) -> Any:
    """Two judges, three variants, two passes; `judge/1` fails on variant 1."""
    brief = Brief("floor/judge", {"text": "never shown"})
    found = await floor.judge(brief, path="p", variants=[{"text": "a"}, {"text": "bc"}, {"text": "d"}], passes=2)
    return [
        [one.judge, one.variant, one.pass_index, one.score if isinstance(one, Judgment) else one.reason.split(":")[0]]
        for one in found
    ]


async def embeddings(case: Case, floor: Floor) -> Any:
    """Unit vectors; equal texts have equal vectors."""
    first = await floor.embed(WORDS)
    again = await floor.embed(WORDS[:2])
    return {
        "dtype": str(first.dtype),
        "shape": list(first.shape),
        "norms": [float(x) for x in (first**2).sum(axis=1)],
        "same": bool((first[0] == first[3]).all() and (again == first[:2]).all()),
        "none": list((await floor.embed([])).shape),
    }


async def retrieval(case: Case, floor: Floor) -> Any:
    """Nearest first, ties by position."""
    return [await floor.retrieve("penguins swim", WORDS, n=3), await floor.retrieve("penguins swim", [], n=3)]


def square_off_loop(x: int, loop_thread: int) -> tuple[int, bool]:
    """Pure function that also returns whether it ran off the loop's thread."""
    return x * x, threading.get_ident() == loop_thread


def broken(x: int) -> int:
    """Function that divides by zero."""
    return x // 0


async def computing(case: Case, floor: Floor) -> Any:
    """`compute` returns a result, raises an exception, and runs off the event loop."""
    value = await floor.compute(square_off_loop, 7, threading.get_ident())
    try:
        await floor.compute(broken, 1)
    except ZeroDivisionError:
        return [*value, "raised"]
    return value


async def notes(case: Case, floor: Floor) -> Any:
    """The last event per kind and path counts."""
    for number in range(3):
        floor.note(Event("signal", "here", {"number": number}))
        floor.note(Event("signal", f"there/{number}", {"number": number}))
    floor.note(Event("other", "here", {"number": 9}))


async def nobody_there(case: Case, floor: Floor) -> Any:
    """Unattended, a person's decision is `go on`."""
    decision = await floor.consult(Form("Go on?", "body", ("stop", "go on")), path="review")
    return [decision.action, decision.text, decision.by]


async def details(case: Case, floor: Floor) -> Any:
    """Persona, decoding, samples and images reach the model and the record; `sent` returns the messages."""
    cold = Decoding(temperature=0.0, top_p=None, max_tokens=33)
    image = Image("image/png", b"bytes")
    asks = [
        _echo("cold", "agent/2", decoding=cold, sample=3),
        _echo("seen", "agent/2", images=(image,)),
        _echo("a/reask"),
    ]
    turns = await floor.ask_all(asks)
    sent = {turn.path: await floor.sent(turn) for turn in turns if isinstance(turn, Turn)}
    return {path: [[m.role, m.content, len(m.images)] for m in messages] for path, messages in sent.items()}


async def crash(case: Case, floor: Floor) -> Any:
    """A bug in the protocol, after a paid ask."""
    await floor.ask("agent/0", "floor/echo", {"text": "x"}, reply=Word, path="a")
    raise KeyError("oh no")


async def quorum(case: Case, floor: Floor) -> Any:
    """An error class of moot."""
    raise QuorumFailed("0 of 3")


async def unknown_role(case: Case, floor: Floor) -> Any:
    """A role without binding."""
    await floor.ask("nobody/0", "floor/echo", {"text": "x"}, reply=Word, path="a")


async def missing_slot(case: Case, floor: Floor) -> Any:
    """A template with a missing slot."""
    return [_heard(turn) for turn in await floor.ask_all([Request("agent/0", "floor/echo", {}, Word, "a"), _echo("b")])]


async def poison(case: Case, floor: Floor) -> Any:
    """A request with the passage as its text."""
    turn = await floor.ask("agent/0", "floor/position", {"text": case.passage}, reply=Position, path="read")
    text = await floor.ask("agent/0", "floor/plain", {"text": case.passage}, reply=FreeText, path="plain")
    await floor.embed([case.passage])
    return [turn.answer, text.text]


BEHAVIOURS: Mapping[str, Callable[[Case, Floor], Awaitable[Any]]] = {
    name: promise for name, promise in globals().items() if inspect.iscoroutinefunction(promise)
}
"""The coroutines above, by name."""


NO_VERDICTS: Mapping[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "a-text": lambda: "Yes",
    "an-answer-that-is-a-number": lambda: Verdict(answer=cast("str", 3), how="x"),
    "no-label": lambda: Verdict(answer="yes", how="x"),
    "a-word-as-confidence": lambda: Verdict(answer=None, how="x", confidence=cast("float", "high")),
    "nan-as-confidence": lambda: Verdict(answer=None, how="x", confidence=math.nan),
    "shares-above-one": lambda: Verdict(answer=None, how="x", distribution={"Yes": 1.5}),
    "an-object-in-the-payload": lambda: Verdict(answer=None, how="x", payload={"it": object()}),
    "exit": lambda: sys.exit(3),
    "cancelled": lambda: (_ for _ in ()).throw(asyncio.CancelledError()),
    "nan-share-of-a-label-called-confidence": lambda: Verdict(
        answer=None, how="x", confidence=math.nan, distribution={"confidence": 0.5}
    ),
}
"""Invalid return values of a protocol, by case id."""


class Behaviours(DebateProtocol):
    """Protocol that runs the behaviour named by the case's title."""

    roles = ("agent", "judge")
    name = "behaviours"

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        if case.title == "no_verdict":
            wrong: Verdict = NO_VERDICTS[case.id]()
            return wrong
        saw = await BEHAVIOURS[case.title](case, floor)
        return Verdict(answer=None, how="saw", payload={"saw": saw})


class TwoSteps(DebateProtocol):
    """Two asks in sequence; the case's title and passage are the words of their paths."""

    roles = ("agent",)
    name = "two-steps"

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        first = await floor.ask("agent/0", "floor/echo", {"text": "1"}, reply=Word, path=f"1/{case.title}")
        vector = (await floor.embed([first.reply.word]))[0]
        floor.note(Event("between", "between", {"sum": float(vector.sum())}))
        second = await floor.ask("agent/0", "floor/plain", {"text": "2"}, reply=FreeText, path=f"2/{case.passage}")
        return Verdict(answer=None, how="done", payload={"first": first.reply.word, "second": second.text})


class AllShared(DebateProtocol):
    """Three concurrent shared asks: a reply, an invalid reply, and the first again."""

    name = "all-shared"
    roles = ("agent",)

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        slots = {"text": "x"}
        asked: list[tuple[str, Request[Any]]] = [
            ("one", Request("agent/0", "floor/plain", slots, FreeText, "first")),
            ("two", Request("agent/0", "floor/plain", slots, Word, "second")),
            ("one", Request("agent/0", "floor/plain", slots, FreeText, "third")),
        ]
        turns = await floor.shared_all(asked)
        heard = [[turn.kind if isinstance(turn, Failure) else turn.text, turn.path] for turn in turns]
        return Verdict(answer=None, how="heard", payload={"heard": heard})
