"""Records of claims with the judges' rulings, made by hand: what the summaries give away is known."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Literal

from planted_records import PlantedSession

from moot.protocols.case import Reference
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED

HASHED = "hashed-ngrams-512-v1"
FACTS = {"schema_version": 1, "task": "claims", "protocol": "ceda", "encoder": HASHED, "simulated": False}
"""What run.yaml says, unless told otherwise."""

TOPICS = ("rivers", "bridges", "penguins", "comets", "sonatas", "enzymes", "glaciers", "novels", "harbours")
SOLID = ("sources", "name", "same", "year", "place", "throughout")
THIN = ("one", "passage", "gives", "another", "figure", "than")
FILLER = ("both", "debaters", "went", "through", "the", "passages", "turn", "and", "weighed", "what", "each", "says")

Tells = Literal["argument", "verdict", "nothing"]


def summary(tells: Tells, hallucinated: bool, draw: random.Random) -> str:
    """A judge's summary that gives the label away by its argument, by verdict words only, or not at all."""
    words = [*draw.sample(FILLER, 9), draw.choice(TOPICS), draw.choice(TOPICS)]
    if tells == "argument":
        words += draw.sample(THIN if hallucinated else SOLID, 4)
    if tells == "verdict":
        words += ["so", "it", "is", draw.choice(("incorrect", "false") if hallucinated else ("correct", "true"))]
    return " ".join(words)


def ruling(text: str, verdict: int | None) -> dict[str, Any]:
    """The data of a `ruling` event."""
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
    """A finished claim."""
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
    """Add `n` claims to a session, half of them hallucinated, and give it back.

    Args:
        tells: what of a summary tells the label.
        seed: of the texts; another one makes other claims.
        judges_right: share of the judges' verdicts that are right.
        group_of: from a claim's number to its group.
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
