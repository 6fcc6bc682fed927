"""The simulated debater of a subject: an argument per topic in the register of its contentiousness, and a proposal."""

from __future__ import annotations

import json
import re
from random import Random

from moot.actors.models.simulated.draft import Draft
from moot.actors.models.simulated.draws import stable_uniform
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
    """

    def __init__(self, settings: SimulatedSettings) -> None:
        self._settings = settings

    def write_speech(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """One argument per topic, and whether that is all."""
        told = [
            {"topic": number, "argument": self._on(topic, prompt, random)}
            for number, topic in enumerate(_topics(prompt), 1)
        ]
        level = 1.0 if prompt.contentiousness is None else prompt.contentiousness
        heard = bool(prompt.tagged("argument"))
        finished = random.random() < (1.0 - level) / 2.0 and heard
        yields = random.random() < _CONCEDES * 2.0 * (1.0 - self._settings.stubbornness)
        values = {
            "declined": False,
            "arguments": told,
            "finished": finished,
            "conceded": yields and heard and level <= _LOW,
        }
        return Draft(json.dumps(values, ensure_ascii=False))

    def write_last_word(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """Mostly that all has been presented; else one more argument on one topic."""
        topics = list(enumerate(_topics(prompt), 1))
        number, topic = topics[int(random.random() * len(topics))]
        adds = random.random() < _ADDS
        told = [{"topic": number, "addition": self._on(topic, prompt, random)}] if adds else []
        values = {"presented_all": not adds, "additions": told, "conceded": False}
        return Draft(json.dumps(values, ensure_ascii=False))

    def write_closing(self, prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
        """One closing statement per topic."""
        said = [
            {"topic": number, "statement": self._on(topic, prompt, random)}
            for number, topic in enumerate(_topics(prompt), 1)
        ]
        return Draft(json.dumps({"declined": False, "statements": said}, ensure_ascii=False))

    def _on(self, topic: SeenFence, prompt: SeenPrompt, random: Random) -> str:
        level = prompt.contentiousness
        plain = level is None or self._settings.contentiousness_effect == 0.0
        register = PLAIN if level is None or plain else register_of(level)
        title = topic.attributes.get("title", "")
        answer = _answer(prompt)
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


def write_proposal(prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
    """A point per topic, and what to find out; of a draft that is shown, the same points with one made narrower."""
    drafted = [fence.body for fence in prompt.tagged("point")]
    asked = [fence.body for fence in prompt.tagged("open_question")]
    if drafted:
        place = int(random.random() * len(drafted))
        drafted[place] = f"{drafted[place].rstrip('.')}, and stop where it does not help."
    points = drafted or [
        f"{topic.attributes.get('title', '')}: {_WAYS[int(random.random() * len(_WAYS))]}." for topic in _topics(prompt)
    ]
    questions = asked or random.sample(_UNKNOWN, 2)
    values: dict[str, object] = {"points": points, "questions": questions}
    if "consents" in prompt.form:
        values |= _consent(random)
    return Draft(json.dumps(values, ensure_ascii=False))


def write_consent(prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
    """Mostly yes; a side that does not consent says why."""
    return Draft(json.dumps(_consent(random), ensure_ascii=False))


def _consent(random: Random) -> dict[str, object]:
    agrees, doubt = random.random() < 0.85, _DOUBTS[int(random.random() * len(_DOUBTS))]
    return {"consents": agrees, "reservations": [] if agrees else [doubt]}


def _answer(prompt: SeenPrompt) -> str:
    """What a side stands for: yes or no, or one of the possible answers, the two sides next to each other."""
    second = int(_SECOND.search("\n".join(prompt.sent)) is not None)
    possible = [fence.body for fence in prompt.tagged("possible_answer")] or ["yes", "no"]
    start = 0 if len(possible) == 2 else int(stable_uniform("stand", prompt.question) * len(possible))
    return f'"{possible[(start + second) % len(possible)]}"'


def _topics(prompt: SeenPrompt) -> list[SeenFence]:
    return prompt.tagged("topic")
