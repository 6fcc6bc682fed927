"""Simulated side of a debate on a subject: its themes, when its arguments are exhausted, and its concessions.

It argues without understanding: the filler quotes the facts and names the topic. At contentiousness k its arguments are
exhausted in (1 - k)/2 of its turns after the opening; at 0.3 or less it concedes in one tenth of them, less often the
more stubborn it is.

On a closed list it uses knowledge: it names its agent's own belief, and weighs its answer and the other's as that agent
does, which pulls towards the truth and is harder to move with more contentiousness.
"""

from __future__ import annotations

import re

from moot.actors.simulated.belief import SimulatedBelief, independent, weighed
from moot.actors.simulated.prompt import ParsedFence
from moot.actors.simulated.turn import DraftSignals, SimulatedTurn
from moot.protocols.text.folding import fold

_CONCERNS = (
    ("What it costs", "Who pays for it, and whether what comes of it is worth that."),
    ("Who is protected, who is burdened", "Which groups gain, which lose, and whether that is fair."),
    ("Freedom against safety", "How far one may be limited for the sake of the other."),
    ("The evidence so far", "What is known, what is only assumed, and who has looked."),
    ("Putting it into practice", "Whether it can be done with the means that there are."),
    ("Effects in the long run", "What it leads to in ten years, wanted or not."),
    ("If nothing is done", "What happens without it, and how soon."),
    ("Trust and accountability", "Who answers for mistakes, and to whom."),
    ("Room for exceptions", "Whether one rule can fit everybody."),
    ("Local or common rules", "Who should decide: those on the spot, or all together."),
)
_COUNT = re.compile(r"(\d+)\s+(?:themes|of them)")
_SECOND = re.compile(r"\bYou are debater B\b")
_LOW, _CONCEDES = 0.3, 0.1
_BALANCED, _CONSENTS, _ADDS = 0.9, 0.85, 0.2
"""Rates of subjects called balanced, of proposals consented to, and of final statements that add an argument."""


def side(turn: SimulatedTurn) -> DraftSignals:
    """State of a side: whether it calls the subject balanced, is exhausted, concedes or consents; or its answer.

    An opening names the agent's belief. Later the side weighs its own answer against the other's, concedes if that one
    convinces it, and consents to no other. A draft in the prompt is adopted with one point made narrower.
    """
    prompt, random = turn.prompt, turn.random
    own, other, amended = (prompt.first(tag) for tag in ("own_answer", "other_answer", "amended_answer"))
    stance = SimulatedBelief("", {})
    if own:
        stance = SimulatedBelief(weighed(turn, own, other), {})
    elif "answer" in prompt.keys:
        stance = independent(turn)
    level = 1.0 if prompt.contentiousness is None else prompt.contentiousness
    persuaded = random.random() < 2.0 * _CONCEDES * (1.0 - turn.settings.stubbornness) and level <= _LOW
    adds, consents = random.random() < _ADDS, random.random() < _CONSENTS and amended in ("", stance.answer)
    values: dict[str, object] = {
        "answer": stance.answer,
        "balanced": random.random() < _BALANCED,
        "declined": False,
        "finished": random.random() < (1.0 - level) / 2.0,
        "conceded": stance.answer == other if own else persuaded,
        "presented_all": not adds,
        "consents": consents,
    }
    if not adds:
        values["additions"] = []
    if consents:
        values["reservations"] = []
    if points := [fence.body for fence in prompt.tagged("point")]:
        values["points"] = [*points[:-1], f"{points[-1].rstrip('.')}, and stop where it does not help."]
        values["questions"] = [fence.body for fence in prompt.tagged("open_question")]
    second = _SECOND.search("\n".join(prompt.sent)) is not None
    stands_for = own or stance.answer or ("no" if second else "yes")
    return DraftSignals(values, "answer" if stance.belief else "", stance.belief, about=f'"{stands_for}"')


def agenda(turn: SimulatedTurn) -> DraftSignals:
    """Agenda of as many themes as the prompt asks for: drawn concerns, or the listed ones, merged where titles are
    equal.

    In a moderator's list each theme names its sources, and themes of both sides come first.
    """
    prompt = turn.prompt
    found = _COUNT.search("\n".join(prompt.sent))
    count = max(1, min(len(_CONCERNS), int(found[1]))) if found else len(_CONCERNS) // 2
    joined: dict[str, list[ParsedFence]] = {}
    for theme in prompt.tagged("own_theme", "theme"):
        joined.setdefault(fold(theme.attributes.get("title", "")), []).append(theme)
    themes: list[dict[str, object]] = [
        {
            "title": alike[0].attributes.get("title", ""),
            "description": alike[0].body,
            "merges": [theme.attributes.get("number", "") for theme in alike],
        }
        for alike in sorted(joined.values(), key=lambda alike: -len(alike))
    ]
    if not themes:
        themes = [{"title": title, "description": text} for title, text in turn.random.sample(_CONCERNS, count)]
    if "topics" in prompt.keys:
        return DraftSignals({"topics": themes[:count]})
    return DraftSignals({"themes": [{k: v for k, v in theme.items() if k != "merges"} for theme in themes[:count]]})
