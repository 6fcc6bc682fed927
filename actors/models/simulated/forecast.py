"""The simulated debater of distributions: what it believes of every label, and how the others' beliefs move it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from random import Random

from moot.actors.models.simulated.agent import SimulatedAgent
from moot.actors.models.simulated.draft import Draft
from moot.actors.models.simulated.prompt import SeenPrompt, SeenReply
from moot.actors.models.simulated.settings import SimulatedSettings
from moot.actors.models.simulated.text import draw_trace

_NAMED = 5
_NOISE = 0.12
_TRUTH_PULL = 0.1
_EXPLORING = 1.2
_HEAT = 0.3
_LEAST = 1e-4


class SimulatedForecaster:
    """Gives probabilities to labels, and revises them towards the others' with the agent's stubbornness.

    Alone it believes what the agent believes. In a debate its distribution is pooled with the others': its own weighs
    as much as it is stubborn, the right label gains a little, and every label gets some noise. A level of
    contentiousness makes it more stubborn, and flattens what it says, so that labels come up which it hardly believes
    in, most of all the first time it speaks; a low one sharpens it. All as much as `contentiousness_effect` says.
    """

    def __init__(self, agent: SimulatedAgent, settings: SimulatedSettings) -> None:
        self._agent, self._settings = agent, settings

    def write(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """A distribution with arguments, as JSON."""
        alone = self._agent.independent(prompt, random, greedy).belief
        belief = self._pooled(prompt, alone, random) if prompt.others else alone
        named = _shares(self._spread(belief, prompt), prompt.most_labels or _NAMED)
        register = self._agent.register(prompt.contentiousness)
        words = self._settings.reasoning_words
        arguments = [draw_trace(prompt, label, register, random).written(words) for label in list(named)[:2]]
        rebuttals = [
            draw_trace(prompt, other.answer, register, random).written(words // 2) for other in prompt.others[:1]
        ]
        given = [{"label": label, "probability": share} for label, share in named.items()]
        reply = {"distribution": given, "arguments": arguments, "rebuttals": rebuttals}
        return Draft(json.dumps({key: reply[key] for key in prompt.form if key in reply}, ensure_ascii=False))

    def _pooled(self, prompt: SeenPrompt, alone: Mapping[str, float], random: Random) -> dict[str, float]:
        own = _seen(prompt.own, alone) if prompt.own else dict(alone)
        others = [_seen(other, alone) for other in prompt.others]
        keep = self._agent.stubbornness(prompt.contentiousness)
        gold = self._agent.gold(prompt)
        pooled = {}
        for label in alone:
            heard = sum(other[label] for other in others) / len(others)
            mass = keep * own[label] + (1.0 - keep) * heard
            mass *= math.exp(_NOISE * (random.random() - 0.5))
            pooled[label] = max(_LEAST, mass * (1.0 + _TRUTH_PULL * random.random()) if label == gold else mass)
        return _normalised(pooled)

    def _spread(self, belief: Mapping[str, float], prompt: SeenPrompt) -> dict[str, float]:
        level, heat = prompt.contentiousness, 1.0
        if level is not None:
            felt = _HEAT * (2.0 * level - 1.0) if prompt.own else _EXPLORING * level
            heat += self._settings.contentiousness_effect * felt
        return _normalised({label: max(_LEAST, mass) ** (1.0 / heat) for label, mass in belief.items()})


def _seen(reply: SeenReply, alone: Mapping[str, float]) -> dict[str, float]:
    """The distribution that a shown reply begins with: `LABEL 0.60, LABEL 0.25`; without one its answer alone."""
    line = reply.text.partition("\n")[0]
    found = dict.fromkeys(alone, 0.0)
    for part in line.split(", "):
        label, _, share = part.rpartition(" ")
        if label in found:
            try:
                found[label] = min(1.0, max(0.0, float(share)))
            except ValueError:
                continue
    if not any(found.values()) and reply.answer in found:
        found[reply.answer] = reply.confidence
    if not any(found.values()):
        return dict(alone)
    return _normalised({label: mass + _LEAST for label, mass in found.items()})


def _shares(belief: Mapping[str, float], most: int) -> dict[str, float]:
    """The likeliest labels with two digits; the first takes what rounding leaves, so that they sum to 1."""
    best = sorted(belief, key=lambda label: -belief[label])[:most]
    total = sum(belief[label] for label in best)
    shares = {label: round(belief[label] / total, 2) for label in best}
    shares[best[0]] = round(shares[best[0]] + 1.0 - sum(shares.values()), 2)
    return {label: share for label, share in shares.items() if share > 0.0}


def _normalised(masses: Mapping[str, float]) -> dict[str, float]:
    total = sum(masses.values())
    return {label: mass / total for label, mass in masses.items()}


_QUESTIONS = (
    "Since when has this been so, and has it changed?",
    "What speaks against {} that has not been mentioned?",
    "Has anything been left out that would point to {}?",
    "How strong is it compared with a usual case of {}?",
)
_TESTS = (
    "A measurement that tells {} from {}.",
    "A look-up of how often {} comes with what is described.",
    "A second observation after some days, to tell {} from {}.",
)


def write_follow_ups(prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
    """Questions and tests about the labels of the joint estimate."""
    labels: Sequence[str] = [part.rpartition(" ")[0] for part in prompt.joint_estimate.split(", ")] or ["it"]
    first, second = labels[0], labels[min(1, len(labels) - 1)]
    asked = sorted(random.sample(range(len(_QUESTIONS)), 2))
    tried = sorted(random.sample(range(len(_TESTS)), 2))
    reply = {
        "questions": [_QUESTIONS[i].format(first) for i in asked],
        "tests": [_TESTS[i].format(first, second) for i in tried],
    }
    return Draft(json.dumps(reply, ensure_ascii=False))
