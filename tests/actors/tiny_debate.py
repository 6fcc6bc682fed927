"""A debate of free texts, which even a model with random weights can hold."""

from __future__ import annotations

from short_protocols import template

from moot.protocols.case import Case
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict
from moot.protocols.replies import FreeText

TEMPLATES = {
    "tiny/say": template("say", "Say something.", "{{ question | fenced('question') }}"),
    "tiny/weigh": template("weigh", "Weigh it.", "{{ told | fenced('told') }}"),
}


class TinyDebate:
    """An agent says something, a judge what it thinks of that."""

    roles = ("agent", "judge")

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        turn = await floor.ask("agent/0", "tiny/say", {"question": case.question}, reply=FreeText, path="say")
        view = await floor.ask("judge/0", "tiny/weigh", {"told": turn.text}, reply=FreeText, path="weigh")
        return Verdict(answer=None, how="weighed", payload={"view": view.text})
