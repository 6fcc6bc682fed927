"""The simulated critical reader: a document's sentences as reasons, marked by the words they share, with noise.

It has no answer key and understands nothing; see `moot.protocols.crit` for what its replies are used for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from statistics import NormalDist

from moot.actors.models.simulated.draft import Draft
from moot.actors.models.simulated.judge import content_words
from moot.actors.models.simulated.prompt import SeenPrompt
from moot.actors.models.simulated.settings import SimulatedSettings
from moot.protocols.selene.sentences import split_sentences

_MOST_REASONS, _MOST_RIVALS = 4, 2
_LONGEST_TEXT = 90
_MATERIAL_CHARACTERS = 20_000
_CLAIM_SHARE = 0.25
_WHY = {True: "It denies a given fact.", False: "Measured by the words that it shares with the claim and the facts."}
_DENIED = re.compile(r"\b(?:no|not|without|never|absence of|absent) (?:any |an? )?(\w{3,})", re.IGNORECASE)
_NORMAL = NormalDist()


class SimulatedCrit:
    """Reads a document as CRIT asks: its sentences are reasons, what only the other side says are rivals.

    A mark is 1 + 8 times a share of words, plus ten times the judge's noise, cut to 0 to 10: for the validity the share
    of the sentence's words that claim and facts have, for the credibility the share that the facts alone have, or one
    half where there are none. At temperature 0 there is no noise. A sentence that denies a word which the facts state
    is said to contradict them; a quarter of the others are called claims.
    """

    def __init__(self, settings: SimulatedSettings) -> None:
        self._settings = settings

    def write(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """The reading as JSON, in at most about 400 tokens."""
        sentences = _sentences(prompt.document)
        rivals = [sentence for sentence in _sentences(prompt.opposing) if sentence not in sentences]
        claim = prompt.claim or (sentences[0] if sentences else "")
        reasons = [sentence for sentence in sentences if sentence != claim]
        shown = [self._argument(text, claim, prompt, random, greedy) for text in _some(reasons, _MOST_REASONS, random)]
        against = [self._argument(text, claim, prompt, random, greedy) for text in _some(rivals, _MOST_RIVALS, random)]
        values = {
            "claim": _short(claim),
            "reasons": shown,
            "rivals": against,
            "justification": f"{len(reasons)} sentences speak for the claim, {len(rivals)} against it.",
            "reflection": "Where other facts are given, the same sentences would weigh differently.",
        }
        return Draft(json.dumps({key: values[key] for key in prompt.form if key in values}, ensure_ascii=False))

    def _argument(
        self, text: str, claim: str, prompt: SeenPrompt, random: Random, greedy: bool
    ) -> dict[str, str | float | bool]:
        words, facts = content_words(text), content_words(prompt.facts)
        given = _share(words, facts) if facts else 0.5
        denied = {word.casefold() for word in _DENIED.findall(text)}
        stated = facts - {word.casefold() for word in _DENIED.findall(prompt.facts)}
        contradicts = bool(denied & stated)
        # Each draw is made in any case, so that one reason's marks do not shift those of the next.
        argument: dict[str, str | float | bool] = {
            "text": _short(text),
            "why": _WHY[contradicts],
            "validity": self._mark(_share(words, content_words(claim) | facts), random, greedy),
            "credibility": self._mark(given, random, greedy),
        }
        if random.random() < _CLAIM_SHARE and not contradicts:
            argument["is_claim"] = True
        if contradicts:
            argument["contradicts_facts"] = True
        return argument

    def _mark(self, share: float, random: Random, greedy: bool) -> float:
        drawn = _NORMAL.inv_cdf(min(1.0 - 1e-9, max(1e-9, random.random())))
        noise = 0.0 if greedy else self._settings.judge_noise * drawn
        return round(10.0 * min(1.0, max(0.0, 0.1 + 0.8 * share + noise)), 1)


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in split_sentences(text[:_MATERIAL_CHARACTERS]) if _short(sentence)]


def _share(words: frozenset[str], known: frozenset[str]) -> float:
    return len(words & known) / len(words) if words else 0.5


def _some(sentences: Sequence[str], most: int, random: Random) -> list[str]:
    """At most so many of the sentences, in their order."""
    if len(sentences) <= most:
        return list(sentences)
    return [sentences[place] for place in sorted(random.sample(range(len(sentences)), most))]


def _short(text: str) -> str:
    """The printable beginning of a sentence, ended between two words where there is a space."""
    plain = text if text.isprintable() else "".join(letter for letter in text if letter.isprintable())
    if len(plain) <= _LONGEST_TEXT:
        return plain
    return plain[:_LONGEST_TEXT].rpartition(" ")[0] or plain[:_LONGEST_TEXT]
