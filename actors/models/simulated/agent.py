"""The simulated debater: what it believes on its own, and how the others' replies move it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.simulated.draft import Draft, json_draft
from moot.actors.models.simulated.draws import stable_digest, stable_uniform
from moot.actors.models.simulated.invention import Invention, invent
from moot.actors.models.simulated.prompt import SeenPrompt, SeenReply
from moot.actors.models.simulated.register import PLAIN, Register, register_of
from moot.actors.models.simulated.settings import SimulatedSettings
from moot.actors.models.simulated.text import draw_trace
from moot.protocols.labels import canonical_label, fold

_SUREST = 0.985
_SPREAD = 0.6
_TRUTH_PULL = 0.8
_DISCUSSION_NOISE = 0.5
_SHARPNESS = 2.0
_UNSTATED = 0.8
"""How sure a debater who does not say so is taken to be."""


@dataclass(frozen=True, slots=True)
class Stance:
    """An answer and the belief in every candidate."""

    answer: str
    belief: dict[str, float]


class SimulatedAgent:
    """Answers questions with a competence, and revises with a stubbornness.

    Every question has an ease, drawn from its text and the seed: the share of independent answers that are
    right. Its mean over questions is the competence; on some questions it is below chance (a common
    misconception). A single reply believes in its answer about as much as the ease allows, so beliefs are
    nearly calibrated; stated confidence is that belief, blurred. An agent without a key, or asked what the
    key does not know, answers at random.

    A reply that hallucinates is drawn as any other; then a claim is put into its reasoning. Its answer is right as
    often as without the claim. So `competence` means the same at every rate, and what a detector finds it has found in
    the words and their probabilities: a lower accuracy cannot give them away.
    """

    def __init__(self, settings: SimulatedSettings, seed: int, key: AnswerKey | None) -> None:
        self._settings, self._seed, self._key = settings, seed, key

    def write(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """A position on the prompt's question, as JSON in the form asked for.

        Args:
            random: the draws of this one reply.
            greedy: whether the most believed answer is always the one given.
        """
        candidates = self._candidates(prompt, self.gold(prompt))
        stance = self.position(prompt, random, greedy)
        trace = draw_trace(prompt, stance.answer, self.register(prompt.contentiousness), random)
        confidence = self._stated(stance.belief[stance.answer], random)
        made_up = self._invention(prompt, candidates, random)
        values = {
            "answer": stance.answer,
            "reasoning": trace.written(self._settings.reasoning_words, made_up.claim),
            "confidence": confidence,
        }
        return json_draft(prompt.form, values, "answer", stance.belief, made_up.particular)

    def position(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Stance:
        """What it believes once it has heard the others, if there are any."""
        gold = self.gold(prompt)
        candidates = self._candidates(prompt, gold)
        stance = self._alone(prompt, candidates, gold, random, greedy)
        if not prompt.others:
            return stance
        own = prompt.own or SeenReply(stance.answer, stance.belief[stance.answer])
        stubbornness = self.stubbornness(prompt.contentiousness)
        return self._moved(own, prompt.others, candidates, gold, stubbornness, random, greedy)

    def independent(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Stance:
        """What it believes before it has heard anybody."""
        gold = self.gold(prompt)
        return self._alone(prompt, self._candidates(prompt, gold), gold, random, greedy)

    def weighed(
        self, prompt: SeenPrompt, own: str, other: str, candidates: Sequence[str], random: Random, greedy: bool
    ) -> str:
        """Its answer after it has held its own against the other's, both from `candidates`; mostly one of the two."""
        gold = self._key.find(prompt.question, prompt.passage) if self._key else None
        shown = next((each for each in candidates if gold and (each == gold or each.startswith(f"{gold}) "))), None)
        # Neither says how sure it is: what tells between them is the truth's pull, and how stubborn it is.
        replies = SeenReply(own, _UNSTATED), SeenReply(other, _UNSTATED)
        stubbornness = self.stubbornness(prompt.contentiousness)
        return self._moved(replies[0], replies[1:], candidates, shown, stubbornness, random, greedy).answer

    def _invention(self, prompt: SeenPrompt, candidates: Sequence[str], random: Random) -> Invention:
        """Drawn after all else, so that a rate changes nothing but the reasoning; empty for most replies."""
        rate = self._settings.hallucination_rate
        if rate == 0.0 or "reasoning" not in prompt.form or random.random() >= rate:
            return Invention("", "")
        return invent((*prompt.sent, *candidates), random)

    def stubbornness(self, contentiousness: float | None) -> float:
        """The setting, drawn by the effect towards 1 for a level above one half, towards 0 for one below."""
        own = self._settings.stubbornness
        if contentiousness is None:
            return own
        pull = self._settings.contentiousness_effect * (2.0 * contentiousness - 1.0)
        return own + pull * (1.0 - own if pull > 0.0 else own)

    def register(self, contentiousness: float | None) -> Register:
        """How it speaks at a level; plainly without one."""
        if contentiousness is None or self._settings.contentiousness_effect == 0.0:
            return PLAIN
        return register_of(contentiousness)

    def gold(self, prompt: SeenPrompt) -> str | None:
        """The right answer to the prompt's question; None when it is not known."""
        gold = self._key.find(prompt.question, prompt.passage) if self._key else None
        return canonical_label(gold, prompt.labels) if gold and prompt.labels else gold

    def _candidates(self, prompt: SeenPrompt, gold: str | None) -> tuple[str, ...]:
        """The closed set; for free text the right answer, if known, likely wrong ones, and what was said."""
        if prompt.labels:
            return prompt.labels
        said = [reply.answer for reply in (prompt.own, *prompt.others) if reply and reply.answer]
        invented = _free_answers(prompt.question, gold, self._seed)
        return tuple({fold(answer): answer for answer in (*invented, *said)}.values())

    def _asked(self, prompt: SeenPrompt) -> str:
        """What tells the prompt's question from others: one that is asked about several texts goes with its text."""
        several = self._key is not None and self._key.needs_passage(prompt.question)
        return f"{prompt.question}\n{prompt.passage}" if several else prompt.question

    def _ease(self, question: str) -> float:
        """U^((1-c)/c) has mean c for uniform U: no other constant is needed to hit the competence."""
        competence = self._settings.competence
        if competence == 0.0:
            return 0.0
        share = stable_uniform(self._seed, "ease", fold(question))
        return float(share ** ((1.0 - competence) / competence))

    def _alone(
        self, prompt: SeenPrompt, candidates: Sequence[str], gold: str | None, random: Random, greedy: bool
    ) -> Stance:
        chance = 1.0 / len(candidates)
        if gold is None or gold not in candidates or len(candidates) == 1:
            answer = candidates[int(random.random() * len(candidates))]
            return _stance(answer, chance + (1.0 - chance) * random.random(), candidates, random)
        asked = self._asked(prompt)
        ease = self._ease(asked)
        # Symmetric around the ease and inside [0, 1], so the mean share of right answers stays the ease.
        ease += (2.0 * random.random() - 1.0) * _SPREAD * min(ease, 1.0 - ease)
        right = random.random() < ease
        answer = gold if right else self._mistake(asked, candidates, gold, random)
        belief = ease
        if ease < chance:
            belief = 1.0 - ease if not right else chance + 0.02 if greedy else ease
        return _stance(answer, belief, candidates, random)

    def _mistake(self, question: str, candidates: Sequence[str], gold: str, random: Random) -> str:
        wrong = [label for label in candidates if label != gold]
        share = random.random()
        if random.random() < 0.5:  # the mistake that most agents make
            share = stable_uniform(self._seed, "mistake", fold(question))
        if all(label.isdigit() for label in candidates):  # scores: a mistake is near more often than far
            wrong.sort(key=lambda label: abs(int(label) - int(gold)))
            share *= share
        return wrong[int(share * len(wrong))]

    def _moved(
        self,
        own: SeenReply,
        others: Sequence[SeenReply],
        candidates: Sequence[str],
        gold: str | None,
        stubbornness: float,
        random: Random,
        greedy: bool,
    ) -> Stance:
        """Weigh stated confidences as evidence; comparing it pulls a little towards the truth."""
        scores = {label: _DISCUSSION_NOISE * (random.random() - 0.5) for label in candidates}
        _add(scores, own, 0.4 + 1.2 * stubbornness)
        for other in others:
            _add(scores, other, 0.9 * (1.0 - stubbornness))
        if gold in scores:
            scores[gold] += _TRUTH_PULL * random.random()
        favourite = max(scores, key=scores.__getitem__)
        answer = favourite if greedy else _pick(_softmax(scores, _SHARPNESS), random.random())
        return Stance(answer, _capped(_softmax(scores, 1.0)))

    def _stated(self, belief: float, random: Random) -> float:
        blur = 1.0 - self._settings.calibration
        shift = 1.5 * blur * (1.0 - belief) * random.random() * 2.0
        noise = blur * (random.random() - 0.5)
        return round(min(0.99, max(0.01, belief + shift + noise)), 2)


def _stance(answer: str, belief: float, candidates: Sequence[str], random: Random) -> Stance:
    weights = {label: 0.5 + random.random() for label in candidates if label != answer}
    if not weights:
        return Stance(answer, {answer: 1.0})
    belief = min(_SUREST, max(1.0 - _SUREST, belief))
    rest = (1.0 - belief) / sum(weights.values())
    shares = {label: rest * weight for label, weight in weights.items()}
    return Stance(answer, {label: shares.get(label, belief) for label in candidates})


def _add(scores: dict[str, float], reply: SeenReply, weight: float) -> None:
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
    """Mixed with a uniform guess where needed, so that nobody is surer than `_SUREST`."""
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
    """Four answers to a question without labels; the right one first when it is known."""
    number = _plain_number(gold or "")
    if number is not None:
        return [str(gold), *(f"{wrong:.12g}" for wrong in (number + 1, number - 1, number * 2 + 3))]
    words = [word for word in dict.fromkeys(fold(question).split()) if len(word) > 3] or ["unknown"]
    start = stable_digest(seed, "free", fold(question))[0]
    drawn = [words[(start + step) % len(words)] for step in range(min(4, len(words)))]
    return [gold, *(word for word in drawn if fold(word) != fold(gold))] if gold else drawn


def _plain_number(text: str) -> float | None:
    """A number that is all of a text, with or without commas; None for any other text."""
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
