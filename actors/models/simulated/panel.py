"""The simulated judge of two texts: marks by the words that they share with the facts, with noise."""

from __future__ import annotations

import json
from random import Random
from statistics import NormalDist

from moot.actors.models.simulated.draft import Draft
from moot.actors.models.simulated.judge import content_words
from moot.actors.models.simulated.prompt import SeenPrompt
from moot.actors.models.simulated.settings import SimulatedSettings

_NORMAL = NormalDist()
_LOWEST, _SPAN = 0.35, 0.4
_SHOWN, _MOST = 80, 5


class SimulatedPanelist:
    """Marks two texts from 0 to 10, whole numbers, without favour for the first."""

    def __init__(self, settings: SimulatedSettings) -> None:
        self._settings = settings

    def write(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """A mark is 3.5 + 4 x the share of the facts' words that the text has, plus ten times the judge's noise."""
        facts = content_words(prompt.passage or prompt.question)
        if "topic" in prompt.form:
            return self._whole(facts, prompt, random, greedy)
        marks = {place: self._mark(place, facts, prompt, random, greedy) for place in ("first", "second")}
        return Draft(json.dumps({**marks, "rationale": _rationale(marks["first"], marks["second"])}))

    def _whole(self, facts: frozenset[str], prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """Marks on every topic, after what the first argues for and the beginnings of what both say."""
        told = {place: prompt.tagged(place) for place in ("first", "second")}
        marks = [
            {
                "topic": number,
                **{place: self._mark(place, facts, prompt, random, greedy, str(number)) for place in told},
            }
            for number in range(1, len(prompt.tagged("topic")) + 1)
        ]
        first, second = (sum(int(pair[place]) for pair in marks) for place in told)
        stances = [fence.attributes.get("stance", "") for fence in told["first"]]
        values = {
            "claim": f"The first debater's stance: {' '.join(stances[:1])}.",
            "arguments": [fence.body[:_SHOWN] for fence in told["first"][:_MOST]],
            "counterarguments": [fence.body[:_SHOWN] for fence in told["second"][:_MOST]],
            "marks": marks,
            "rationale": _rationale(first, second),
        }
        return Draft(json.dumps(values, ensure_ascii=False))

    def _mark(
        self,
        place: str,
        facts: frozenset[str],
        prompt: SeenPrompt,
        random: Random,
        greedy: bool,
        topic: str | None = None,
    ) -> int:
        fences = prompt.tagged(place)
        words = content_words(
            " ".join(fence.body for fence in fences if topic is None or fence.attributes.get("topic") == topic)
        )
        share = len(words & facts) / len(facts) if facts else 0.5
        drawn = _NORMAL.inv_cdf(min(1.0 - 1e-9, max(1e-9, random.random())))
        noise = 0.0 if greedy else self._settings.judge_noise * drawn
        return round(10.0 * min(1.0, max(0.0, _LOWEST + _SPAN * share + noise)))


def _rationale(first: float, second: float) -> str:
    if first == second:
        return "Both make equally much of what is given."
    return f"The {'first' if first > second else 'second'} makes more of what is given."
