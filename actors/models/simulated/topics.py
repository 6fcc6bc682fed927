"""Simulated themes and topics of a debate: concerns that fit any subject, and a moderator that merges equal ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from random import Random

from moot.actors.models.simulated.draft import Draft
from moot.actors.models.simulated.prompt import SeenFence, SeenPrompt
from moot.protocols.labels import fold

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
_MOST = 20
_BALANCED = 0.9
_COUNT = re.compile(r"(\d+)\s+(?:themes|of them)")


def write_balance(prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
    """Mostly that the subject is balanced."""
    balanced = random.random() < _BALANCED
    why = "Both sides have something to bring." if balanced else "One side has little to bring."
    return Draft(json.dumps({"balanced": balanced, "why": why}))


def write_themes(prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
    """As many themes as the prompt asks for: drawn concerns, or one list of what is shown."""
    own, others = prompt.tagged("own_theme"), prompt.tagged("theme")
    count = _count(prompt)
    if own or others:
        seen = _first_of_each([*own, *others])
        listed = [{"title": each.attributes.get("title", ""), "description": each.body} for each in seen[:count]]
    else:
        drawn = random.sample(_CONCERNS, min(count, len(_CONCERNS)))
        listed = [{"title": title, "description": description} for title, description in drawn]
    return Draft(json.dumps({"themes": listed}, ensure_ascii=False))


def write_agenda(prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
    """As many of the proposed themes as the prompt asks for, those of both sides first; equal titles are merged."""
    themes = prompt.tagged("theme")
    topics = []
    for first in _first_of_each(themes):
        merged = [each for each in themes if _title(each) == _title(first)]
        tags = [each.attributes.get("number", "") for each in merged]
        topics.append({"title": first.attributes.get("title", ""), "description": first.body, "merges": tags})
    topics.sort(key=lambda topic: -len(topic["merges"]))
    return Draft(json.dumps({"topics": topics[: _count(prompt)]}, ensure_ascii=False))


def _title(theme: SeenFence) -> str:
    return fold(theme.attributes.get("title", ""))


def _first_of_each(themes: Iterable[SeenFence]) -> Sequence[SeenFence]:
    first: dict[str, SeenFence] = {}
    for theme in themes:
        first.setdefault(_title(theme), theme)
    return list(first.values())


def _count(prompt: SeenPrompt) -> int:
    found = _COUNT.search("\n".join(prompt.sent))
    return max(1, min(_MOST, int(found[1]))) if found else len(_CONCERNS) // 2
