"""Scripted SocraSynth debate in which all requests succeed; tests change parts of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripted_floor import Script, ScriptedFloor, run_debate

from moot.protocols.case import Case
from moot.protocols.messages import Slots, Verdict

SUBJECT = Case(id="s", question="Should the town ban cars?", passage="The town has 900 cars.")
ROUNDS = "round/[1-9]*/agent/?"


def themes(*titles: str) -> dict[str, Any]:
    return {"themes": [{"title": title, "description": f"About {title}."} for title in titles]}


def agenda(*titles: str, merges: Mapping[str, list[str]] | None = None) -> dict[str, Any]:
    return {
        "topics": [
            {"title": title, "description": f"About {title}.", "merges": list((merges or {}).get(title, []))}
            for title in titles
        ]
    }


def speech(path: str, slots: Slots, **marks: bool) -> dict[str, Any]:
    """One argument per topic, which names where it was made."""
    told = [{"topic": n, "argument": f"{path} on {t['title']}."} for n, t in enumerate(slots["topics"], 1)]
    return {"declined": False, "arguments": told, "finished": False, "conceded": False, **marks}


def finishing(path: str, slots: Slots) -> dict[str, Any]:
    return speech(path, slots, finished=True)


def conceding(path: str, slots: Slots) -> dict[str, Any]:
    return speech(path, slots, conceded=True)


def closing(path: str, slots: Slots) -> dict[str, Any]:
    said = [{"topic": n, "statement": f"{path} on {t['title']}."} for n, t in enumerate(slots["topics"], 1)]
    return {"declined": False, "statements": said}


def reading(validity: float, *, contradicts: bool = False) -> dict[str, Any]:
    """A judge's reading of one reason without rivals; Gamma is a tenth of the validity."""
    reason = {"text": "a weak reason", "validity": validity, "credibility": 5.0, "contradicts_facts": contradicts}
    return {"claim": "c", "reasons": [reason], "rivals": [], "justification": "So.", "reflection": ""}


def whole(first: float, second: float, *topics: int) -> dict[str, Any]:
    """A judge's reading of all closing statements at once; without topics, on the first three."""
    pairs = [{"topic": number, "first": first, "second": second} for number in topics or (1, 2, 3)]
    return {"claim": "c", "arguments": ["a"], "counterarguments": ["b"], "marks": pairs, "rationale": "Overall."}


def by_topic(first: float, second: float) -> dict[str, Any]:
    """A judge's comparison of a debate with an answer on three topics at once."""
    return {"marks": [{"topic": n, "rationale": "Why.", "first": first, "second": second} for n in (1, 2, 3)]}


def marks(first: float, second: float) -> dict[str, Any]:
    return {"first": first, "second": second, "rationale": "Because."}


GOOD: dict[str, Any] = {
    "topics/balance/agent/?": {"balanced": True, "why": "Both can argue."},
    "topics/propose/agent/0": themes("Air", "Trade"),
    "topics/propose/agent/1": themes("Trade", "Freedom"),
    "topics/refine/agent/0": themes("Air", "Trade"),
    "topics/refine/agent/1": themes("Trade", "Freedom"),
    "topics/moderator": agenda("Trade", "Air", "Freedom", merges={"Trade": ["A2", "B1"]}),
    "round/*/agent/?": speech,
    "crit/*": reading(6.0),
    "confirm/agent/?": {"presented_all": True, "additions": [], "conceded": False},
    "closing/agent/?": closing,
    "joint/draft/agent/0": {"points": ["Draft point."], "questions": ["Who pays?"]},
    "joint/amend/agent/1": {"points": ["Amended point."], "questions": [], "consents": True, "reservations": []},
    "joint/consent/agent/0": {"consents": True, "reservations": []},
    "panel/order/1/judge/*": whole(8, 6),
    "panel/order/2/judge/*": whole(5, 7),
    "panel/order/1/*": marks(8, 6),
    "panel/order/2/*": marks(5, 7),
    "versus/answer": {"points": ["Another point at some length."]},
    "versus/order/1/judge/*": by_topic(7, 5),
    "versus/order/2/judge/*": by_topic(6, 4),
    "versus/order/1/*": marks(7, 5),
    "versus/order/2/*": marks(6, 4),
}
"""A wins 8 to 6 when it comes first, and 7 to 5 when it comes second. Gamma is constant."""

LONG = {"patience": 50, "topics.count": 3, "crit.max_depth": 0}
"""Settings with which a plateau of Gamma ends nothing."""


async def run_scripted(
    changes: Script | None = None, settings: Mapping[str, Any] | None = None, *, case: Case = SUBJECT, **floor: Any
) -> tuple[ScriptedFloor, Verdict]:
    """Run the debate with `changes` to its script."""
    return await run_debate("socrasynth", case, GOOD, changes, LONG | dict(settings or {}), **floor)
