"""Answers of the simulated agent: a position, a distribution over labels, and a synthesis of two arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from moot.actors.simulated.argument import argued_for, as_number, quotations
from moot.actors.simulated.belief import (
    SimulatedBelief,
    candidates_of,
    gold,
    independent,
    position,
    stubbornness,
)
from moot.actors.simulated.invention import invent
from moot.actors.simulated.prompt import ParsedPrompt, ParsedReply
from moot.actors.simulated.turn import DraftSignals, SimulatedTurn
from moot.actors.simulated.words import draw_reasoning
from moot.protocols.text.folding import fold

_NAMED = 5
_NOISE = 0.12
_TRUTH_PULL = 0.1
_EXPLORING = 1.2
_HEAT = 0.3
_LEAST = 1e-4

_SCALE = re.compile(r"a whole number from (-?\d{1,6}) to (-?\d{1,6})")
_NUMBER = "is the number alone"
_MOST_SCORES = 200
_TRUST, _PER_QUOTATION, _MOST_QUOTATIONS = 0.5, 0.1, 3


def answer(turn: SimulatedTurn) -> DraftSignals:
    """Answer to the prompt's question, with a reasoning, and a confidence: the belief with noise.

    A hallucinating reply is drawn like any other; then a claim is inserted into its reasoning. Its accuracy does not
    change, so `competence` means the same at every rate, and a detector can only use the words and their probabilities.
    """
    prompt, random, settings = turn.prompt, turn.random, turn.settings
    stance = position(turn)
    trace = draw_reasoning(turn, stance.answer)
    blur, belief = 1.0 - settings.calibration, stance.belief[stance.answer]
    stated = belief + 1.5 * blur * (1.0 - belief) * random.random() * 2.0 + blur * (random.random() - 0.5)
    claim = particular = ""
    # Drawn last, so that a rate changes nothing but the reasoning.
    if settings.hallucination_rate and "reasoning" in prompt.keys and random.random() < settings.hallucination_rate:
        claim, particular = invent((*prompt.sent, *candidates_of(turn, gold(turn))), random)
    values = {
        "answer": stance.answer,
        "reasoning": trace.written(settings.reasoning_words, claim),
        "confidence": round(min(0.99, max(0.01, stated)), 2),
    }
    return DraftSignals(values, "answer", stance.belief, particular, about=stance.answer)


def distribution(turn: SimulatedTurn) -> DraftSignals:
    """Distribution over labels, with arguments, revised towards the others' by the agent's stubbornness.

    Without others it is the agent's belief. In a debate it is pooled with the others' distributions: the agent's own
    weight is its stubbornness, the right label gains a little, and every label gets some noise. High contentiousness
    raises the stubbornness and flattens the distribution, so that improbable labels appear, most of all in the first
    turn; low contentiousness sharpens it. `contentiousness_effect` scales all of this.
    """
    prompt = turn.prompt
    alone = independent(turn).belief
    belief = _pooled(turn, alone) if prompt.others else alone
    named = _shares(_spread(belief, turn), prompt.most_labels or _NAMED)
    words = turn.settings.reasoning_words
    values = {
        "distribution": [{"label": label, "probability": share} for label, share in named.items()],
        "arguments": [draw_reasoning(turn, label).written(words) for label in list(named)[:2]],
        "rebuttals": [draw_reasoning(turn, other.answer).written(words // 2) for other in prompt.others[:1]],
    }
    return DraftSignals(values)


def _pooled(turn: SimulatedTurn, alone: Mapping[str, float]) -> dict[str, float]:
    own = _seen(turn.prompt.own, alone) if turn.prompt.own else dict(alone)
    others = [_seen(other, alone) for other in turn.prompt.others]
    keep, right, random = stubbornness(turn), gold(turn), turn.random
    pooled = {}
    for label in alone:
        others_mean = sum(other[label] for other in others) / len(others)
        mass = keep * own[label] + (1.0 - keep) * others_mean
        mass *= math.exp(_NOISE * (random.random() - 0.5))
        pooled[label] = max(_LEAST, mass * (1.0 + _TRUTH_PULL * random.random()) if label == right else mass)
    return _normalised(pooled)


def _spread(belief: Mapping[str, float], turn: SimulatedTurn) -> dict[str, float]:
    level, heat = turn.prompt.contentiousness, 1.0
    if level is not None:
        felt = _HEAT * (2.0 * level - 1.0) if turn.prompt.own else _EXPLORING * level
        heat += turn.settings.contentiousness_effect * felt
    return _normalised({label: max(_LEAST, mass) ** (1.0 / heat) for label, mass in belief.items()})


def _seen(reply: ParsedReply, alone: Mapping[str, float]) -> dict[str, float]:
    """Distribution at the start of a quoted reply: `LABEL 0.60, LABEL 0.25`; without one, its answer alone."""
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
    """Most likely labels with two digits; the first absorbs the rounding error, so that they sum to 1."""
    best = sorted(belief, key=lambda label: -belief[label])[:most]
    total = sum(belief[label] for label in best)
    shares = {label: round(belief[label] / total, 2) for label in best}
    shares[best[0]] = round(shares[best[0]] + 1.0 - sum(shares.values()), 2)
    return {label: share for label, share in shares.items() if share > 0.0}


def _normalised(masses: Mapping[str, float]) -> dict[str, float]:
    total = sum(masses.values())
    return {label: mass / total for label, mass in masses.items()}


def synthesis(turn: SimulatedTurn) -> DraftSignals:
    """Synthesis of two arguments to one answer.

    Their positions count like others' replies in a revision, with a weight that grows with their quotations; if they
    argue for answers, the synthesis chooses among these. A score is right as often as the agent's own answers;
    otherwise it is off by one, upwards if the first argument quotes more.
    """
    prompt = turn.prompt
    arguments = [fence.body for fence in prompt.tagged("argument")]
    quoted = [len(quotations(argument)) for argument in arguments]
    labels = prompt.labels or _scores(prompt)
    turn = turn.about(labels=labels)
    if prompt.tagged("criterion", "passage") and labels and all(re.fullmatch(r"-?\d+", label) for label in labels):
        stance = _scored(turn, sum(quoted[:1]) - sum(quoted[1:2]))
    else:
        found = zip(map(argued_for, arguments), quoted, strict=True)
        positions = [
            ParsedReply(a, _TRUST + _PER_QUOTATION * min(_MOST_QUOTATIONS, n)) for a, n in found if a is not None
        ]
        stance = _among([reply.answer for reply in positions], position(turn.about(others=tuple(positions))))
    if _NUMBER in "\n".join(prompt.sent):
        stance = _numbers(stance, prompt.question)
    return DraftSignals({"answer": stance.answer}, "answer", stance.belief, about=stance.answer)


def _scored(turn: SimulatedTurn, lead: int) -> SimulatedBelief:
    """Score; `lead` is the first argument's surplus of quotations."""
    stance, right = independent(turn), gold(turn)
    scores = sorted(turn.prompt.labels, key=int)
    place = scores.index(stance.answer if right not in scores else right)
    if right is None or stance.answer != right:
        up = lead > 0 or (lead == 0 and turn.random.random() < 0.5)
        beside = [each for each in (place + 1, place - 1) if 0 <= each < len(scores)]
        place = (beside if up else beside[::-1])[0] if beside and right is not None else place
    return SimulatedBelief(scores[place], _around(scores, place, stance.belief[stance.answer]))


def _numbers(stance: SimulatedBelief, question: str) -> SimulatedBelief:
    """The same belief over numbers: without a key an agent may believe in words."""
    belief: dict[str, float] = {}
    for answer, share in stance.belief.items():
        number = as_number(answer, question)
        belief[number] = belief.get(number, 0.0) + share
    return SimulatedBelief(as_number(stance.answer, question), belief)


def _among(argued: Sequence[str], stance: SimulatedBelief) -> SimulatedBelief:
    """Belief over the answers that were argued for; unchanged if there are none."""
    names = {fold(answer) for answer in argued}
    belief = {answer: share for answer, share in stance.belief.items() if fold(answer) in names}
    total = sum(belief.values())
    if not total:
        return stance
    answer = stance.answer if stance.answer in belief else max(belief, key=belief.__getitem__)
    return SimulatedBelief(answer, {each: share / total for each, share in belief.items()})


def _around(scores: Sequence[str], place: int, belief: float) -> dict[str, float]:
    """Distribution around one score; the remaining belief halves with every step."""
    weights = {score: 0.5 ** abs(at - place) for at, score in enumerate(scores) if at != place}
    rest = sum(weights.values())
    shares = {score: (1.0 - belief) * weight / rest for score, weight in weights.items()}
    return {score: shares.get(score, belief if weights else 1.0) for score in scores}


def _scores(prompt: ParsedPrompt) -> tuple[str, ...]:
    """Scores between the bounds that the instructions name."""
    found = _SCALE.search("\n".join(prompt.sent))
    if found is None or not 0 <= int(found[2]) - int(found[1]) < _MOST_SCORES:
        return ()
    return tuple(str(score) for score in range(int(found[1]), int(found[2]) + 1))
