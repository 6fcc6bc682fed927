"""Short protocols with features that no built-in protocol has."""

from __future__ import annotations

from typing import Any

from moot.protocols.case import Case, Image
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Verdict
from moot.protocols.replies import FreeText, Position


def template(marker: str, system: str, user: str) -> str:
    """Source of a template; the scripted server selects its script by the marker."""
    return f"{{% block system %}}[[{marker}]] {system}{{% endblock %}}{{% block user %}}{user}{{% endblock %}}"


_QUESTION = "{{ question | fenced('question') }}"
TEMPLATES = {
    "short/describe": template("describe", "Describe the picture.", "What is to be seen?"),
    "short/look": template("look", "Answer as JSON.", _QUESTION + " {{ picture | fenced('picture') }}"),
    "tiny/say": template("say", "Say something.", "{{ question | fenced('question') }}"),
    "tiny/weigh": template("weigh", "Weigh it.", "{{ told | fenced('told') }}"),
}


PICTURE = Image("image/png", b"\x89PNG not really a picture")


class SharedPicture:
    """One shared description of a picture for all cases; each case asks its own question about it."""

    roles = ("vision", "agent")

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        wanted = Request("vision/0", "short/describe", {}, FreeText, "picture", images=(PICTURE,))
        seen = await floor.shared("the picture", wanted)
        slots = {"question": case.question, "picture": seen.reply.text}
        turn = await floor.ask("agent/0", "short/look", slots, reply=Position, path="look")
        return Verdict(answer=turn.answer, how="looked", payload={"picture": seen.text, "path": seen.path})


class TinyDebate:
    """An agent answers and a judge comments, both in free text, which even random weights can generate."""

    roles = ("agent", "judge")

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        turn = await floor.ask("agent/0", "tiny/say", {"question": case.question}, reply=FreeText, path="say")
        view = await floor.ask("judge/0", "tiny/weigh", {"told": turn.text}, reply=FreeText, path="weigh")
        return Verdict(answer=None, how="weighed", payload={"view": view.text})


class RetrievalProtocol:
    """Retrieves the passages of the run's documents that are most similar to a case's question; asks no agent."""

    roles = ("agent",)
    name = "finding"
    needs_logprobs = False
    reads_documents = True

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        found = await floor.search(case.question, n=3)
        passages = [[each.document, each.chunk, each.page, each.text, each.similarity] for each in found]
        return Verdict(answer=None, how="found", payload={"passages": passages})


def _position(answer: str) -> dict[str, Any]:
    return {"answer": answer, "reasoning": "As scripted.", "confidence": 0.75}


SCRIPTS: dict[str, Any] = {
    "describe": lambda step, user: "A red ball on a lawn.",
    "look": lambda step, user: _position("Yes" if "red ball" in user else "No"),
}
