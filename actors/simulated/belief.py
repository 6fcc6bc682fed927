"""Beliefs of the simulated agent: drawn independently, and updated with the others' replies.

Every question has an ease, drawn from its text and the seed: the share of independent answers that are right. Its mean
over questions is the competence; on some questions it is below chance (a common misconception). A reply's belief in its
answer is about its ease, so beliefs are nearly calibrated. An agent without a key, or with a question that the key does
not know, answers at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from moot.actors.simulated.prompt import ParsedReply
from moot.actors.simulated.turn import SimulatedTurn
from moot.protocols.seeds import stable_digest, stable_uniform
from moot.protocols.text.folding import fold
from moot.protocols.text.labels import canonical_label

_SUREST = 0.985
_SPREAD = 0.6
_TRUTH_PULL = 0.8
_DISCUSSION_NOISE = 0.5
_SHARPNESS = 2.0
_UNSTATED = 0.8
"""Assumed confidence of a debater that states none."""


@dataclass(frozen=True, slots=True)
class SimulatedBelief:
    """Belief of a simulated agent: an answer, and a probability for every candidate."""

    answer: str
    belief: dict[str, float]


def position(turn: SimulatedTurn) -> SimulatedBelief:
    """Belief after the others' replies, if any."""
    stance = independent(turn)
    if not turn.prompt.others:
        return stance
    own = turn.prompt.own or ParsedReply(stance.answer, stance.belief[stance.answer])
    right = gold(turn)
    return _moved(turn, own, turn.prompt.others, candidates_of(turn, right), right)


def independent(turn: SimulatedTurn) -> SimulatedBelief:
    """Prior belief, before any other reply."""
    random, right = turn.random, gold(turn)
    candidates = candidates_of(turn, right)
    chance = 1.0 / len(candidates)
    if right is None or right not in candidates or len(candidates) == 1:
        return _stance(turn.pick(candidates), chance + (1.0 - chance) * random.random(), candidates, random)
    asked = _identity(turn)
    ease = _ease(turn, asked)
    # Symmetric around the ease and inside [0, 1], so that the mean share of right answers stays the ease.
    ease += (2.0 * random.random() - 1.0) * _SPREAD * min(ease, 1.0 - ease)
    knows = random.random() < ease
    answer = right if knows else _mistake(turn, asked, candidates, right)
    belief = ease
    if ease < chance:
        belief = 1.0 - ease if not knows else chance + 0.02 if turn.greedy else ease
    return _stance(answer, belief, candidates, random)


def weighed(turn: SimulatedTurn, own: str, other: str) -> str:
    """Answer after weighing the agent's own against the other's: mostly one of the two."""
    candidates = list(dict.fromkeys([own, other]))
    right = turn.key.find(turn.prompt.question, turn.prompt.passage) if turn.key else None
    shown = next((each for each in candidates if right and (each == right or each.startswith(f"{right}) "))), None)
    # Neither states a confidence: the pull of the truth and the stubbornness decide.
    return _moved(turn, ParsedReply(own, _UNSTATED), [ParsedReply(other, _UNSTATED)], candidates, shown).answer


def stubbornness(turn: SimulatedTurn) -> float:
    """Effective stubbornness: the setting, shifted towards 1 for a level above one half, towards 0 for one below."""
    own, level = turn.settings.stubbornness, turn.prompt.contentiousness
    if level is None:
        return own
    pull = turn.settings.contentiousness_effect * (2.0 * level - 1.0)
    return own + pull * (1.0 - own if pull > 0.0 else own)


def gold(turn: SimulatedTurn) -> str | None:
    """Gold answer to the prompt's question; None when unknown."""
    found = turn.key.find(turn.prompt.question, turn.prompt.passage) if turn.key else None
    return canonical_label(found, turn.prompt.labels) if found and turn.prompt.labels else found


def candidates_of(turn: SimulatedTurn, right: str | None) -> tuple[str, ...]:
    """Candidate answers: the closed set; for free text the gold answer, if known, wrong ones, and those in the
    prompt."""
    prompt = turn.prompt
    if prompt.labels:
        return prompt.labels
    given = [reply.answer for reply in (prompt.own, *prompt.others) if reply and reply.answer]
    invented = _free_answers(prompt.question, right, turn.seed)
    return tuple({fold(answer): answer for answer in (*invented, *given)}.values())


def _identity(turn: SimulatedTurn) -> str:
    """Key of the prompt's question; includes the passage when several passages have the same question."""
    prompt = turn.prompt
    several = turn.key is not None and turn.key.needs_passage(prompt.question)
    return f"{prompt.question}\n{prompt.passage}" if several else prompt.question


def _ease(turn: SimulatedTurn, question: str) -> float:
    """Ease of a question. U^((1-c)/c) has mean c for uniform U, so no further constant is needed for the competence."""
    competence = turn.settings.competence
    if competence == 0.0:
        return 0.0
    return float(stable_uniform(turn.seed, "ease", fold(question)) ** ((1.0 - competence) / competence))


def _mistake(turn: SimulatedTurn, question: str, candidates: Sequence[str], right: str) -> str:
    wrong = [label for label in candidates if label != right]
    share = turn.random.random()
    if turn.random.random() < 0.5:  # the mistake that most agents make
        share = stable_uniform(turn.seed, "mistake", fold(question))
    if all(label.isdigit() for label in candidates):  # scores: small errors are more frequent
        wrong.sort(key=lambda label: abs(int(label) - int(right)))
        share *= share
    return wrong[int(share * len(wrong))]


def _moved(
    turn: SimulatedTurn, own: ParsedReply, others: Iterable[ParsedReply], candidates: Sequence[str], right: str | None
) -> SimulatedBelief:
    """Updates the belief with stated confidences as evidence, which pulls it slightly towards the truth."""
    keep = stubbornness(turn)
    scores = {label: _DISCUSSION_NOISE * (turn.random.random() - 0.5) for label in candidates}
    _add(scores, own, 0.4 + 1.2 * keep)
    for other in others:
        _add(scores, other, 0.9 * (1.0 - keep))
    if right in scores:
        scores[right] += _TRUTH_PULL * turn.random.random()
    favourite = max(scores, key=scores.__getitem__)
    answer = favourite if turn.greedy else _pick(_softmax(scores, _SHARPNESS), turn.random.random())
    return SimulatedBelief(answer, _capped(_softmax(scores, 1.0)))


def _stance(answer: str, belief: float, candidates: Sequence[str], random: Random) -> SimulatedBelief:
    weights = {label: 0.5 + random.random() for label in candidates if label != answer}
    if not weights:
        return SimulatedBelief(answer, {answer: 1.0})
    belief = min(_SUREST, max(1.0 - _SUREST, belief))
    rest = (1.0 - belief) / sum(weights.values())
    shares = {label: rest * weight for label, weight in weights.items()}
    return SimulatedBelief(answer, {label: shares.get(label, belief) for label in candidates})


def _add(scores: dict[str, float], reply: ParsedReply, weight: float) -> None:
    """Adds the log-odds of the reply against a uniform guess; even an unsure reply is some evidence."""
    if reply.answer not in scores:
        return
    confidence = min(_SUREST, max(1.0 - _SUREST, reply.confidence))
    odds = confidence * max(1, len(scores) - 1) / (1.0 - confidence)
    scores[reply.answer] += weight * max(0.1, math.log(odds))


def _softmax(scores: dict[str, float], sharpness: float) -> dict[str, float]:
    top = max(scores.values())
    weights = {label: math.exp(sharpness * (score - top)) for label, score in scores.items()}
    total = sum(weights.values())
    return {label: weight / total for label, weight in weights.items()}


def _capped(belief: dict[str, float]) -> dict[str, float]:
    """Mixes with a uniform distribution where needed, so that no probability exceeds `_SUREST`."""
    highest, chance = max(belief.values()), 1.0 / len(belief)
    if highest <= _SUREST or len(belief) == 1:
        return belief
    share = (highest - _SUREST) / (highest - chance)
    return {label: (1.0 - share) * value + share * chance for label, value in belief.items()}


def _pick(distribution: dict[str, float], share: float) -> str:
    for label, probability in distribution.items():
        share -= probability
        if share < 0.0:
            return label
    return max(distribution, key=distribution.__getitem__)


def _free_answers(question: str, gold: str | None, seed: int) -> list[str]:
    """Four candidate answers to a question without labels; the right one first when known."""
    number = _plain_number(gold or "")
    if number is not None:
        return [str(gold), *(f"{wrong:.12g}" for wrong in (number + 1, number - 1, number * 2 + 3))]
    words = [word for word in dict.fromkeys(fold(question).split()) if len(word) > 3] or ["unknown"]
    start = stable_digest(seed, "free", fold(question))[0]
    drawn = [words[(start + step) % len(words)] for step in range(min(4, len(words)))]
    return [gold, *(word for word in drawn if fold(word) != fold(gold))] if gold else drawn


def _plain_number(text: str) -> float | None:
    """The number that a text consists of, with or without commas; None for any other text."""
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
