"""Five protocols of at most 30 lines each that no built-in one covers; their reply models, templates and scripts."""

from __future__ import annotations

from typing import Any

from pydantic import field_validator

from moot.protocols.case import Case, Image
from moot.protocols.floor import Brief, Floor, Request
from moot.protocols.messages import Form, Judgment, Verdict
from moot.protocols.replies import FreeText, Position, Reply


def template(marker: str, system: str, user: str) -> str:
    """A template's source; the scripted server finds its script by the marker."""
    return f"{{% block system %}}[[{marker}]] {system}{{% endblock %}}{{% block user %}}{user}{{% endblock %}}"


_QUESTION = "{{ question | fenced('question') }}"
TEMPLATES = {
    "five/draft": template("draft", "Draft an answer as JSON.", _QUESTION),
    "five/final": template("final", "Finish as told, as JSON.", _QUESTION + " {{ told | fenced('told') }}"),
    "five/describe": template("describe", "Describe the picture.", "What is to be seen?"),
    "five/look": template("look", "Answer as JSON.", _QUESTION + " {{ picture | fenced('picture') }}"),
    "five/shares": template("shares", "Give a probability for each label as JSON.", _QUESTION),
    "five/compare": template("compare", "Judge the first answer.", "{% for a in order %}{{ a }};{% endfor %}"),
    "five/meta": template("meta", "Say what the agent was sent.", "{{ sent | fenced('sent') }}"),
}


class HumanDecision:
    """A draft, a person's decision, and a final answer that follows it."""

    roles = ("agent",)

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        slots = {"question": case.question}
        draft = await floor.ask("agent/0", "five/draft", slots, reply=Position, path="draft")
        form = Form("May this stand?", draft.reply.answer, ("accept", "overrule"))
        decision = await floor.consult(form, path="review")
        told = {"told": f"{decision.action}: {decision.text}"}
        final = await floor.ask("agent/0", "five/final", slots | told, reply=Position, path="final")
        payload = {"action": decision.action, "text": decision.text, "by": decision.by, "draft": draft.answer}
        return Verdict(answer=final.answer, how=decision.action, payload=payload)


PICTURE = Image("image/png", b"\x89PNG not really a picture")


class SharedPicture:
    """One description of a picture for all cases; each asks its own question about it."""

    roles = ("vision", "agent")

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        wanted = Request("vision/0", "five/describe", {}, FreeText, "picture", images=(PICTURE,))
        seen = await floor.shared("the picture", wanted)
        slots = {"question": case.question, "picture": seen.reply.text}
        turn = await floor.ask("agent/0", "five/look", slots, reply=Position, path="look")
        return Verdict(answer=turn.answer, how="looked", payload={"picture": seen.text, "path": seen.path})


class Shares(Reply):
    """A probability for each label."""

    shares: dict[str, float]

    @field_validator("shares")
    @classmethod
    def _sum_to_one(cls, shares: dict[str, float]) -> dict[str, float]:
        if min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > 1e-6:
            raise ValueError("the shares must be probabilities that sum to 1")
        return shares


class Distributions:
    """Agents state a distribution over the labels; the verdict is their linear pool."""

    roles = ("agent",)

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        slots = {"question": case.question}
        asks = [Request(f"agent/{i}", "five/shares", slots, Shares, f"shares/reask/{i}") for i in range(2)]
        asks.append(Request("agent/2", "five/shares", slots, Shares, "shares/unparsable"))
        turns = [turn for turn in await floor.ask_all(asks) if hasattr(turn, "reply")]
        labels = case.labels or ()
        pool = {label: sum(t.reply.shares[label] for t in turns) / len(turns) for label in labels}
        best = max(labels, key=lambda label: pool[label])
        return Verdict(answer=best, how="pooled", confidence=pool[best], distribution=pool)


class SwappedJudges:
    """No agents: judges compare two answers in both orders; one of them never answers."""

    roles = ("judge",)

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        labels = list(case.labels or ())
        orders = [{"order": labels}, {"order": labels[::-1]}]
        found = await floor.judge(Brief("five/compare", {}), path="compare", variants=orders)
        heard = [one for one in found if isinstance(one, Judgment)]
        first = [one.score if one.variant == 0 else 1 - one.score for one in heard]
        mean = sum(first) / len(first) if first else None
        missing = [[one.judge, one.variant, one.reason] for one in found if not isinstance(one, Judgment)]
        payload = {"places": [[one.judge, one.variant] for one in found], "missing": missing}
        answer = None if mean is None else labels[0] if mean > 0.5 else labels[1]
        return Verdict(answer=answer, how="judged", confidence=mean, payload=payload)


class MetaJudge:
    """A judge that reads word for word what an agent was sent."""

    roles = ("agent", "judge")

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        slots = {"question": case.question}
        path = "draft/reask"
        turn = await floor.ask("agent/1", "five/draft", slots, reply=Position, path=path, images=(PICTURE,))
        sent = [[message.role, message.content] for message in await floor.sent(turn)]
        read = {"sent": "\n".join(f"{role}: {content}" for role, content in sent)}
        meta = await floor.ask("judge/0", "five/meta", read, reply=FreeText, path="meta")
        return Verdict(answer=turn.answer, how="read", payload={"sent": sent, "meta": meta.text})


FIVE: dict[str, Any] = {
    "human": HumanDecision(),
    "picture": SharedPicture(),
    "shares": Distributions(),
    "swapped": SwappedJudges(),
    "meta": MetaJudge(),
}


class AllFive:
    """Each case says in its title which of the five it is for."""

    roles = ("agent", "vision", "judge")
    name = "all-five"
    needs_logprobs = False

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        verdict: Verdict = await FIVE[case.title].run(case, floor)
        return verdict


def _position(answer: str) -> dict[str, Any]:
    return {"answer": answer, "reasoning": "As scripted.", "confidence": 0.75}


SCRIPTS: dict[str, Any] = {
    "draft": lambda step, user: _position("Yes"),
    "final": lambda step, user: _position("No" if "overrule" in user else "Yes"),
    "describe": lambda step, user: "A red ball on a lawn.",
    "look": lambda step, user: _position("Yes" if "red ball" in user else "No"),
    "shares": lambda step, user: {
        "shares": {"Yes": 0.75, "No": 0.25} if step.removesuffix("~1").endswith("/0") else {"Yes": 0.5, "No": 0.5}
    },
    "compare": lambda step, user: {
        "support": "supported",
        "score": 0.9 if user.startswith("Yes") else 0.3,
        "rationale": "",
    },
    "meta": lambda step, user: user,
}
