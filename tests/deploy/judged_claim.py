"""A server that debates and judges one claim as it is told, and the templates that it knows its prompts by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from scripted_server import ScriptedServer

from moot.protocols.templates import Templates

MARKS = {"debater": "debater", "judge": "judge", "image": "image", "image_prompt": "look"}


@dataclass
class Debate:
    """What each role replies, to be changed by a test; from the step key and the user text.

    Attributes:
        server: its calls and bodies tell what was asked.
        prompts: the folder of templates that a check has to be given.
    """

    prompts: Path
    debater: Callable[[str, str], Any] = lambda step, user: "AGREE. E1 says so."
    judge: Callable[[str, str], Any] = lambda step, user: ruling(1)
    look: Callable[[str, str], Any] = lambda step, user: "Look for a year."
    image: Callable[[str, str], Any] = lambda step, user: "A plate says 1932."
    server: ScriptedServer = field(init=False)

    @property
    def flags(self) -> tuple[str, ...]:
        """What a command is told, so that it asks this server."""
        return ("--model", self.server.model, "--prompts", str(self.prompts), "--quiet")

    def messages(self, mark: str) -> list[tuple[str, Any]]:
        """System text and user content of every request of a kind."""
        found = [msgspec.json.decode(body)["messages"] for body in self.server.bodies.values()]
        marked = [each for each in found if f"[[{mark}]]" in each[0]["content"]]
        return [(each[0]["content"], each[1]["content"]) for each in marked]


def ruling(verdict: int | None, confidence: float | None = 0.8, summary: str = "E1 settles it.") -> dict[str, Any]:
    """A judge's reply."""
    return {"consensus": True, "agreed": [], "summary": summary, "verdict": verdict, "confidence": confidence}


@contextmanager
def judged_claim(folder: Path) -> Iterator[Debate]:
    """Serves while inside; `folder` gets the templates."""
    sources = Templates().sources
    for name, mark in MARKS.items():
        file = folder / "ceda" / f"{name}.j2"
        file.parent.mkdir(parents=True, exist_ok=True)
        begin = "{% block system %}"
        file.write_text(sources[f"ceda/{name}"].replace(begin, f"{begin}[[{mark}]]", 1))
    debate = Debate(folder)
    scripts = {mark: lambda step, user, mark=mark: getattr(debate, mark)(step, user) for mark in MARKS.values()}
    debate.server = ScriptedServer(scripts)
    try:
        yield debate
    finally:
        debate.server.close()
