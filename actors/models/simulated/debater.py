"""The simulated debater of a subject: an argument per topic in the register of its contentiousness, and a proposal."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random

from moot.actors.models.simulated.agent import SimulatedAgent
from moot.actors.models.simulated.draft import Draft, json_draft
from moot.actors.models.simulated.prompt import SeenFence, SeenPrompt
from moot.actors.models.simulated.register import PLAIN, register_of
from moot.actors.models.simulated.settings import SimulatedSettings
from moot.actors.models.simulated.text import Trace, sentences_of

_SECOND = re.compile(r"\bYou are debater B\b")
_LOW, _CONCEDES = 0.3, 0.1
_ADDS = 0.2
"""Share of last words before the closings that add an argument."""
_WAYS = (
    "begin on a small scale, publish what is found, and let both sides look at it after a year",
    "leave it to those concerned, within limits that are written down beforehand",
    "spend on it only as long as what comes of it is measured",
    "name somebody who answers for it, and let the exceptions be few and public",
)
_UNKNOWN = (
    "How would one see within a year that it went wrong?",
    "What do those say who would have to live with it?",
    "Which of the figures given were checked by somebody else?",
)
_DOUBTS = ("The first point still asks too much at once.", "Who pays remains open.")


class SimulatedDebater:
    """Argues for or against a subject without understanding it: it quotes the facts and names the topic.

    What contentiousness changes is the register, and how soon a debater has said all: at level k it has in (1 - k)/2 of
    its turns after the opening; at 0.3 or less it concedes in one tenth of them, the less so the more stubborn it is.

    On a closed list it does know something: it names what its agent believes on its own, and it weighs its answer and
    the other's as that agent does, which pulls towards the truth and is the harder to move the more contentious it is.
    """

    def __init__(self, agent: SimulatedAgent, settings: SimulatedSettings) -> None:
        self._agent, self._settings = agent, settings

    def write_speech(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """One argument per topic; in an opening its own answer, where one is asked for; later, whether that is all."""
        if prompt.labels:
            return self._labelled_opening(prompt, random, greedy)
        told = self._told(prompt, "argument", _answer(prompt), random)
        if "finished" not in prompt.instructions:
            return _json({"declined": False, "arguments": told})
        level = 1.0 if prompt.contentiousness is None else prompt.contentiousness
        finished = random.random() < (1.0 - level) / 2.0
        yields = self._yields(prompt, random, greedy)
        return _json({"declined": False, "arguments": told, "finished": finished, "conceded": yields})

    def _labelled_opening(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        stance = self._agent.independent(prompt, random, greedy)
        told = self._told(prompt, "argument", f'"{stance.answer}"', random)
        values = {"answer": stance.answer, "declined": False, "arguments": told}
        return json_draft(tuple(values), values, "answer", stance.belief)

    def _yields(self, prompt: SeenPrompt, random: Random, greedy: bool) -> bool:
        """On a closed list, whether the other's answer convinces it; on a subject, now and then at a low level."""
        drawn = random.random() < _CONCEDES * 2.0 * (1.0 - self._settings.stubbornness)
        if prompt.tagged("own_answer"):
            return self._weighed(prompt, random, greedy) == _first(prompt, "other_answer")
        return drawn and prompt.contentiousness is not None and prompt.contentiousness <= _LOW

    def _weighed(self, prompt: SeenPrompt, random: Random, greedy: bool) -> str:
        """What it holds, of the possible answers, now that it has heard the other's."""
        own, other = _first(prompt, "own_answer"), _first(prompt, "other_answer")
        return self._agent.weighed(prompt, own, other, list(dict.fromkeys([own, other])), random, greedy)

    def write_last_word(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """Mostly that all has been presented; else one more argument on one topic."""
        topics = list(enumerate(_topics(prompt), 1))
        number, topic = topics[int(random.random() * len(topics))]
        adds = random.random() < _ADDS
        told = [{"topic": number, "addition": self._on(topic, prompt, _answer(prompt), random)}] if adds else []
        conceded = bool(prompt.tagged("own_answer")) and self._yields(prompt, random, greedy)
        return _json({"presented_all": not adds, "additions": told, "conceded": conceded})

    def write_closing(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """One closing statement per topic."""
        return _json({"declined": False, "statements": self._told(prompt, "statement", _answer(prompt), random)})

    def _told(self, prompt: SeenPrompt, what: str, answer: str, random: Random) -> list[dict[str, object]]:
        return [
            {"topic": number, what: self._on(topic, prompt, answer, random)}
            for number, topic in enumerate(_topics(prompt), 1)
        ]

    def _on(self, topic: SeenFence, prompt: SeenPrompt, answer: str, random: Random) -> str:
        level = prompt.contentiousness
        plain = level is None or self._settings.contentiousness_effect == 0.0
        register = PLAIN if level is None or plain else register_of(level)
        title = topic.attributes.get("title", "")
        sentences = sentences_of(prompt.passage or prompt.question)
        opener = register.openers[int(random.random() * len(register.openers))].split()
        closer = register.closers[int(random.random() * len(register.closers))].format(answer).split()
        trace = Trace(opener, sentences, int(random.random() * len(sentences)), closer)
        claims = [f"On {title.lower()} that is what counts."]
        if prompt.tagged("moderator_question") and random.random() < 0.5:
            claims.append("That also answers the moderator's question.")
        if prompt.tagged("weak_point") and random.random() < 0.5:
            claims.append("What was found weak rests on this as well.")
        return trace.written(self._settings.reasoning_words, " ".join(claims))

    def write_proposal(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """A point per topic, and what to find out; of a draft that is shown, the same points with one made narrower."""
        drafted = [fence.body for fence in prompt.tagged("point")]
        asked = [fence.body for fence in prompt.tagged("open_question")]
        if drafted:
            place = int(random.random() * len(drafted))
            drafted[place] = f"{drafted[place].rstrip('.')}, and stop where it does not help."
        points = drafted or [
            f"{topic.attributes.get('title', '')}: {_WAYS[int(random.random() * len(_WAYS))]}."
            for topic in _topics(prompt)
        ]
        values: dict[str, object] = {"points": points, "questions": asked or random.sample(_UNKNOWN, 2)}
        if "consents" in prompt.form:
            values |= _consent(True, random)
        if "answer" in prompt.form:
            values = {"answer": self._weighed(prompt, random, greedy), **values}
        return _json(values)

    def write_consent(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """Mostly yes; no to an answer that it does not hold. A side that does not consent says why."""
        named = _first(prompt, "amended_answer")
        holds = not named or named == self._weighed(prompt, random, greedy)
        return _json(_consent(holds, random))


def _consent(holds: bool, random: Random) -> dict[str, object]:
    agrees, doubt = holds and random.random() < 0.85, _DOUBTS[int(random.random() * len(_DOUBTS))]
    return {"consents": agrees, "reservations": [] if agrees else [doubt]}


def _json(values: Mapping[str, object]) -> Draft:
    return Draft(json.dumps(values, ensure_ascii=False))


def _first(prompt: SeenPrompt, tag: str) -> str:
    return next((fence.body for fence in prompt.tagged(tag)), "")


def _answer(prompt: SeenPrompt) -> str:
    """What a side stands for: its own answer, else yes or no."""
    second = _SECOND.search("\n".join(prompt.sent)) is not None
    return f'"{_first(prompt, "own_answer") or ("no" if second else "yes")}"'


def _topics(prompt: SeenPrompt) -> list[SeenFence]:
    return prompt.tagged("topic")
