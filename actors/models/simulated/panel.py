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


class SimulatedPanelist:
    """Marks two texts from 0 to 10, whole numbers, without favour for the first."""

    def __init__(self, settings: SimulatedSettings) -> None:
        self._settings = settings

    def write(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """A mark is 3.5 + 4 x the share of the facts' words that the text has, plus ten times the judge's noise."""
        facts = content_words(prompt.passage or prompt.question)
        marks = {place: self._mark(place, facts, prompt, random, greedy) for place in ("first", "second")}
        better = "neither" if marks["first"] == marks["second"] else max(marks, key=marks.__getitem__)
        rationale = (
            "Both make equally much of what is given."
            if better == "neither"
            else f"The {better} makes more of what is given."
        )
        return Draft(json.dumps({**marks, "rationale": rationale}))

    def _mark(self, place: str, facts: frozenset[str], prompt: SeenPrompt, random: Random, greedy: bool) -> int:
        words = content_words(" ".join(fence.body for fence in prompt.tagged(place)))
        share = len(words & facts) / len(facts) if facts else 0.5
        drawn = _NORMAL.inv_cdf(min(1.0 - 1e-9, max(1e-9, random.random())))
        noise = 0.0 if greedy else self._settings.judge_noise * drawn
        return round(10.0 * min(1.0, max(0.0, _LOWEST + _SPAN * share + noise)))
