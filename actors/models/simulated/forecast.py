"""The simulated debater of distributions: what it believes of every label, and how the others' beliefs move it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from moot.actors.models.simulated.belief import gold, independent, stubbornness
from moot.actors.models.simulated.prompt import SeenReply
from moot.actors.models.simulated.text import draw_trace
from moot.actors.models.simulated.turn import Draft, Turn, json_reply

_NAMED = 5
_NOISE = 0.12
_TRUTH_PULL = 0.1
_EXPLORING = 1.2
_HEAT = 0.3
_LEAST = 1e-4
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


def write_distribution(turn: Turn) -> Draft:
    """Probabilities of labels, with arguments, revised towards the others' with the agent's stubbornness.

    Alone it believes what the agent believes. In a debate its distribution is pooled with the others': its own weighs
    as much as it is stubborn, the right label gains a little, and every label gets some noise. A level of
    contentiousness makes it more stubborn, and flattens what it says, so that labels come up which it hardly believes
    in, most of all the first time it speaks; a low one sharpens it. All as much as `contentiousness_effect` says.
    """
    prompt, words = turn.prompt, turn.settings.reasoning_words
    alone = independent(turn).belief
    belief = _pooled(turn, alone) if prompt.others else alone
    named = _shares(_spread(belief, turn), prompt.most_labels or _NAMED)
    reply = {
        "distribution": [{"label": label, "probability": share} for label, share in named.items()],
        "arguments": [draw_trace(turn, label).written(words) for label in list(named)[:2]],
        "rebuttals": [draw_trace(turn, other.answer).written(words // 2) for other in prompt.others[:1]],
    }
    return turn.filled(reply)


def _pooled(turn: Turn, alone: Mapping[str, float]) -> dict[str, float]:
    own = _seen(turn.prompt.own, alone) if turn.prompt.own else dict(alone)
    others = [_seen(other, alone) for other in turn.prompt.others]
    keep, right, random = stubbornness(turn), gold(turn), turn.random
    pooled = {}
    for label in alone:
        heard = sum(other[label] for other in others) / len(others)
        mass = keep * own[label] + (1.0 - keep) * heard
        mass *= math.exp(_NOISE * (random.random() - 0.5))
        pooled[label] = max(_LEAST, mass * (1.0 + _TRUTH_PULL * random.random()) if label == right else mass)
    return _normalised(pooled)


def _spread(belief: Mapping[str, float], turn: Turn) -> dict[str, float]:
    level, heat = turn.prompt.contentiousness, 1.0
    if level is not None:
        felt = _HEAT * (2.0 * level - 1.0) if turn.prompt.own else _EXPLORING * level
        heat += turn.settings.contentiousness_effect * felt
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


def write_follow_ups(turn: Turn) -> Draft:
    """Questions and tests about the labels of the joint estimate."""
    labels = [part.rpartition(" ")[0] for part in turn.prompt.first("joint_estimate").split(", ")]
    first, second = labels[0], labels[min(1, len(labels) - 1)]
    asked = sorted(turn.random.sample(range(len(_QUESTIONS)), 2))
    tried = sorted(turn.random.sample(range(len(_TESTS)), 2))
    questions = [_QUESTIONS[i].format(first) for i in asked]
    return json_reply({"questions": questions, "tests": [_TESTS[i].format(first, second) for i in tried]})
