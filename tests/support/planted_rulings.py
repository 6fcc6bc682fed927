"""Planted records of claims with judges' rulings, whose summaries have a known association with the label."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Literal

from planted_records import PlantedSession

from moot.protocols.case import Reference
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED

HASHED = "hashed-ngrams-512-v1"
FACTS = {"schema_version": 1, "task": "claims", "protocol": "ceda", "encoder": HASHED, "simulated": False}
"""Default content of run.yaml."""

TOPICS = ("rivers", "bridges", "penguins", "comets", "sonatas", "enzymes", "glaciers", "novels", "harbours")
SOLID = ("sources", "name", "same", "year", "place", "throughout")
THIN = ("one", "passage", "gives", "another", "figure", "than")
FILLER = ("both", "debaters", "went", "through", "the", "passages", "turn", "and", "weighed", "what", "each", "says")

Tells = Literal["argument", "verdict", "nothing"]


def summary(tells: Tells, hallucinated: bool, draw: random.Random) -> str:
    """A judge's summary that reveals the label by its argument, by words of a verdict only, or not at all."""
    words = [*draw.sample(FILLER, 9), draw.choice(TOPICS), draw.choice(TOPICS)]
    if tells == "argument":
        words += draw.sample(THIN if hallucinated else SOLID, 4)
    if tells == "verdict":
        words += ["so", "it", "is", draw.choice(("incorrect", "false") if hallucinated else ("correct", "true"))]
    return " ".join(words)


def ruling(text: str, verdict: int | None) -> dict[str, Any]:
    """Data of a `ruling` event."""
    judge = {"judge": "judge/0", "verdict": verdict, "confidence": None, "summary": text, "consensus": True}
    return {
        "judges": [judge | {"missing": ""}],
        "verdict": verdict,
        "p_hallucinated": None,
        "summary": text,
        "classifier": None,
    }


def add_claim(
    session: PlantedSession, name: str, text: str, gold: str | None, verdict: int | None, **fields: Any
) -> None:
    """Add a finished claim."""
    question = fields.pop("question", f"Claim {name}.")
    session.case(name, gold=gold, question=question, labels=CLAIM_LABELS, **fields)
    session.event(name, "ruling", "ruling", ruling(text, verdict))
    session.verdict(name, None if verdict is None else SUPPORTED if verdict else HALLUCINATED)


def add_claims(
    session: PlantedSession,
    n: int = 120,
    tells: Tells = "argument",
    *,
    seed: int = 0,
    judges_right: float = 0.7,
    group_of: Callable[[int], str] = lambda number: "",
) -> PlantedSession:
    """Add `n` claims to a session, half of them hallucinated; returns the session.

    Args:
        tells: the part of a summary that reveals the label.
        seed: random seed of the texts; another seed gives other claims.
        judges_right: share of correct judges' verdicts.
        group_of: function from a claim's number to its group.
    """
    draw = random.Random(f"{seed}/{tells}")
    for number in range(n):
        false = number % 2 == 1
        right = draw.random() < judges_right
        add_claim(
            session,
            f"c-{number:03}",
            summary(tells, false, draw),
            HALLUCINATED if false else SUPPORTED,
            int(right is not false),
            question=f"Claim {seed} {number}.",
            reference=Reference(group=group_of(number)),
        )
    return session
