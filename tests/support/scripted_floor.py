"""Floor in memory with replies scripted by path; records requests and events."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from moot.actors.simulated.prompt import parse_prompt
from moot.protocols.case import Case, Image
from moot.protocols.errors import AskFailed, PathReused
from moot.protocols.events import DebateEvent, as_event
from moot.protocols.floor import Brief, Request
from moot.protocols.lookups import Classified, Passage
from moot.protocols.messages import (
    Decision,
    Decoding,
    Event,
    Failure,
    Form,
    Intrinsic,
    Judgment,
    LogprobStage,
    Message,
    Missing,
    Slots,
    Turn,
    Usage,
    Verdict,
)
from moot.protocols.registry import make_protocol
from moot.protocols.templates import Templates
from moot.protocols.text.folding import fold

_TEMPLATES = Templates()
R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True)
class ScriptedPosition:
    """A scripted position. `@DEGREES` in the reasoning sets its embedding on the unit circle (default: 0)."""

    answer: str
    confidence: float = 0.9
    p: float | None = 0.9
    reasoning: str = "Because the passage says so."
    printed: float | None = None
    stage: LogprobStage = "unknown"


Scripted = ScriptedPosition | float | list[str] | dict[str, Any] | None
"""A position, a judge's score, a paraphrase, any other reply as plain data, or None for a failure."""

Script = Mapping[str, Scripted | Callable[[str, Slots], Scripted]]
"""Reply by path or pattern of paths; the first pattern that matches counts."""


class ScriptedFloor:
    """Implements `Floor`; an unscripted path fails the test."""

    def __init__(
        self,
        case: Case,
        script: Script,
        *,
        seed: int = 0,
        judges: int = 1,
        decisions: Mapping[str, Decision] | None = None,
        passages: Sequence[Passage] = (),
        classified: Classified | None = None,
    ) -> None:
        self.case = case
        self.seed = seed
        self.asks: dict[str, Request[Any]] = {}
        self.events: list[Event] = []
        self.together: list[list[str]] = []
        self.embedded: list[str] = []
        self._script = script
        self._judges = [f"judge/{i}" for i in range(judges)]
        self._decisions = dict(decisions or {})
        self.forms: dict[str, Form] = {}
        self._passages, self._classified = list(passages), classified
        self.searched: list[str] = []
        self.classified: list[str] = []
        self.shared_keys: dict[str, str] = {}

    def event(self, kind: str, path: str | None = None) -> dict[str, Any]:
        """Data of the only event of a kind (at a path)."""
        found = [e.data for e in self.events if e.kind == kind and path in (None, e.path)]
        assert len(found) == 1, (kind, path, found)
        return found[0]

    def kinds(self) -> list[str]:
        """Kinds of all events, in order."""
        return [event.kind for event in self.events]

    def paths(self, start: str = "") -> list[str]:
        """Requested paths that start with `start`, in order."""
        return [path for path in self.asks if path.startswith(start)]

    def _say(self, request: Request[R]) -> Turn[R] | Failure:
        if request.path in self.asks:
            raise PathReused(request.path)
        self.asks[request.path] = request
        value = self._lookup(request.path, request.slots)
        if value is None:
            return Failure(request.path, request.role, "refused", "scripted")
        intrinsic = None
        answer = None
        if isinstance(value, ScriptedPosition):
            data: dict[str, Any] = {"answer": value.answer, "reasoning": value.reasoning}
            data["confidence"] = value.confidence
            answer = value.answer if self.case.labels else fold(value.answer)
            if value.p is not None or value.printed is not None:
                intrinsic = Intrinsic(normalised=value.p, printed=value.printed, stage=value.stage)
        elif isinstance(value, list):
            data = {"sentences": value}
        elif isinstance(value, dict):
            data = value
            answer = value.get("answer")
        else:
            raise AssertionError(f"{request.path}: {value!r} is no reply to an ask")
        reply = request.reply.model_validate(data)
        return Turn(request.path, request.role, "scripted", "", reply, answer, intrinsic, Usage(1, 1))

    def _lookup(self, path: str, slots: Slots) -> Scripted:
        for pattern, value in self._script.items():
            if fnmatchcase(path, pattern):
                return value(path, slots) if callable(value) else value
        raise AssertionError(f"unscripted path {path!r}")

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
        turn = self._say(Request(role, template, slots, reply, path, sample, images, decoding))
        if isinstance(turn, Failure):
            raise AskFailed(turn.path, turn.kind, turn.message)
        return turn

    async def ask_all(self, requests: Sequence[Request[R]]) -> list[Turn[R] | Failure]:
        self.together.append([request.path for request in requests])
        return [self._say(request) for request in requests]

    async def judge(
        self, brief: Brief, *, path: str, variants: Sequence[Slots] = ({},), passes: int = 1
    ) -> list[Judgment | Missing]:
        return [
            self._judge_once(brief, f"{path}/{judge}/variant/{v}/pass/{n}", judge, v, n, variants[v])
            for judge in self._judges
            for v in range(len(variants))
            for n in range(passes)
        ]

    def _judge_once(
        self, brief: Brief, path: str, judge: str, variant: int, number: int, slots: Slots
    ) -> Judgment | Missing:
        if path in self.asks:
            raise PathReused(path)
        merged = {**brief.slots, **slots}
        self.asks[path] = Request(judge, brief.template, merged, BaseModel, path)
        score = self._lookup(path, merged)
        if score is None:
            return Missing(path, judge, variant, number, "refused: scripted")
        assert isinstance(score, float), (path, score)
        support = "supported" if score >= 0.5 else "contradicted"
        return Judgment(path, judge, "scripted", variant, number, score, support, "")  # type: ignore[arg-type]

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.embedded.extend(texts)
        degrees = [float(found.group(1)) if (found := re.search(r"@(-?\d+)", t)) else 0.0 for t in texts]
        return np.array([[math.cos(math.radians(d)), math.sin(math.radians(d))] for d in degrees], np.float32)

    async def compute(self, function: Callable[..., T], *args: Any) -> T:
        return function(*args)

    def note(self, event: Event | DebateEvent) -> None:
        self.events.append(as_event(event))

    def panel(self, role: str = "judge") -> list[str]:
        return list(self._judges)

    async def consult(self, form: Form, *, path: str) -> Decision:
        self.forms[path] = form
        return self._decisions.get(path, Decision("go on", by="unattended"))

    async def retrieve(self, query: str, documents: Sequence[str], *, n: int = 5) -> list[int]:
        return list(range(len(documents)))[:n]

    async def search(self, query: str, *, n: int = 5) -> list[Passage]:
        self.searched.append(query)
        return self._passages[:n]

    async def classify(self, text: str) -> Classified | None:
        self.classified.append(text)
        return self._classified

    async def shared(self, key: str, request: Request[R]) -> Turn[R]:
        (outcome,) = await self.shared_all([(key, request)])
        if isinstance(outcome, Failure):
            raise AskFailed(outcome.path, outcome.kind, outcome.message)
        return outcome

    async def shared_all(self, requests: Sequence[tuple[str, Request[R]]]) -> list[Turn[R] | Failure]:
        self.shared_keys |= {request.path: key for key, request in requests}
        return [self._say(request) for _, request in requests]

    async def sent(self, turn: Turn[Any]) -> tuple[Message, ...]:
        return self._messages(turn.path)

    def rendered(self, path: str) -> list[str]:
        """Sent messages of a path: the system text and the user's."""
        return [message.content for message in self._messages(path)]

    def instructions(self, path: str) -> str:
        """Sent messages of a path without the material between tags."""
        return parse_prompt(self._messages(path)).instructions

    def prompt(self, path: str) -> str:
        """Sent messages of a path as one text."""
        return "\n".join(self.rendered(path))

    def _messages(self, path: str) -> tuple[Message, ...]:
        request = self.asks[path]
        *before, last = _TEMPLATES.render(request.template, request.slots)
        return (*before, Message(last.role, last.content, tuple(request.images)))


async def run_debate(
    protocol: str, case: Case, good: Script, changes: Script | None, settings: Mapping[str, Any] | None, **floor: Any
) -> tuple[ScriptedFloor, Verdict]:
    """Run a debate by a script in which all requests succeed, with `changes`, whose patterns have priority."""
    changes = changes or {}
    script = {**changes, **{pattern: value for pattern, value in good.items() if pattern not in changes}}
    made = ScriptedFloor(case, script, **floor)
    return made, await make_protocol(protocol, settings or {}).run(case, made)
