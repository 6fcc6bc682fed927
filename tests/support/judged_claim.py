"""Scripted server for the debate and judgment of one claim."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from openai_server import Script, ScriptedServer

KEYS = {"/turn/": "debater", "/judge/": "judge", "/vision/prompt": "look", "shared-": "image"}
"""Role by a part of the step key."""


@dataclass
class ScriptedClaimDebate:
    """Replies of each role, from the step key and the user text; tests replace them.

    Attributes:
        server: the server, with calls and bodies of requests.
    """

    debater: Script = lambda step, user: '{"says": "AGREE", "text": "E1 says so.", "stance": "supports"}'
    judge: Script = lambda step, user: ruling(1)
    look: Script = lambda step, user: "Look for a year."
    image: Script = lambda step, user: "A plate says 1932."
    server: ScriptedServer = field(init=False)

    def __post_init__(self) -> None:
        self.server = ScriptedServer({role: self._script(role) for role in KEYS.values()}, by_key=KEYS)

    def _script(self, role: str) -> Script:
        return lambda step, user: getattr(self, role)(step, user)

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of a command that uses this server."""
        return ("--model", self.server.model, "--quiet")

    def messages(self, role: str) -> list[tuple[str, Any]]:
        """System text and user content of every request to a role."""
        (key,) = [key for key, each in KEYS.items() if each == role]
        bodies = [body for step, body in self.server.bodies.items() if key in step]
        sent = [msgspec.json.decode(body)["messages"] for body in bodies]
        return [(system["content"], user["content"]) for system, user in sent]


def ruling(verdict: int | None, confidence: float | None = 0.8, summary: str = "E1 settles it.") -> dict[str, Any]:
    """Reply of a judge."""
    return {"consensus": True, "agreed": [], "summary": summary, "verdict": verdict, "confidence": confidence}


@contextmanager
def judged_claim() -> Iterator[ScriptedClaimDebate]:
    """Context with a running server."""
    debate = ScriptedClaimDebate()
    try:
        yield debate
    finally:
        debate.server.close()
