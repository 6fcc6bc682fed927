"""The words of simulated replies: reasoning traces from the passage, paraphrases, and plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from moot.actors.models.simulated.draws import stable_uniform
from moot.actors.models.simulated.register import PLAIN, Register, register_of
from moot.actors.models.simulated.turn import Draft, Turn, json_reply

_MATERIAL_CHARACTERS = 20_000
_PLAIN_WORDS = 40
_HELD_WORDS = "as it is "
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_OTHER_WORDS = {
    "because": "since",
    "however": "yet",
    "although": "though",
    "while": "whereas",
    "also": "in addition",
    "but": "yet",
    "usually": "as a rule",
    "often": "frequently",
    "many": "numerous",
    "large": "big",
    "begin": "start",
    "begins": "starts",
    "began": "started",
    "use": "employ",
    "uses": "employs",
    "called": "named",
    "located": "situated",
    "such as": "for instance",
}
_SWAPS = re.compile(rf"\b({'|'.join(_OTHER_WORDS)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Trace:
    """A reasoning whose words are drawn, but which is not written yet.

    Attributes:
        opener, closer: the words before and after what is cited.
        sentences: what can be cited; the citation begins at sentence number `start`, counted from 0.
    """

    opener: list[str]
    sentences: list[str]
    start: int
    closer: list[str]

    def written(self, words: int, claim: str = "") -> str:
        """The reasoning in about `words` words.

        Args:
            claim: a sentence that is put in before the closer. It takes the place of other words, but is never cut.
        """
        claimed = claim.split()
        room = words - len(claimed)
        if room <= 0 and claimed:
            return claim
        cited = _cited(self.sentences, self.start, room - len(self.opener) - len(self.closer))
        said = [*self.opener, *cited, *self.closer][-room:]
        end = max(0, len(said) - len(self.closer))
        return " ".join([*said[:end], *claimed, *said[end:]])


def draw_trace(turn: Turn, answer: str, register: Register | None = None) -> Trace:
    """A reasoning that cites the passage, or the question when there is none.

    It is in the register of the turn unless one is given. Agents with the same answer mostly cite the same place, so
    that agreement shows in the text as well.
    """
    sentences = sentences_of(turn.prompt.passage or turn.prompt.question)
    place = stable_uniform("place", turn.prompt.question, answer)
    if turn.random.random() < 0.2:
        place = turn.random.random()
    opener, closer = frame(turn, answer, register)
    return Trace(opener, sentences, int(place * len(sentences)), closer)


def frame(turn: Turn, answer: str, register: Register | None = None) -> tuple[list[str], list[str]]:
    """The first and the last words of a reasoning, in the register of the prompt's contentiousness; plain without."""
    level = turn.prompt.contentiousness
    if level is None or turn.settings.contentiousness_effect == 0.0:
        register = PLAIN
    spoken = register or register_of(level or 0.0)
    return turn.pick(spoken.openers).split(), turn.pick(spoken.closers).format(answer).split()


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, as far as it is read; at least one, which may be empty."""
    return _SENTENCE_END.split(text[:_MATERIAL_CHARACTERS].strip())


def _cited(sentences: list[str], start: int, words: int) -> list[str]:
    """`words` printable words from the sentence at `start` on, going round at the end."""
    cited: list[str] = []
    for step in range(max(len(sentences), words)):
        if len(cited) >= words:
            break
        sentence = sentences[(start + step) % len(sentences)]
        cited += [word for word in sentence.split() if word.isprintable()] or ["nothing."]
    cited = cited[: max(0, words)]
    if cited and cited[-1][-1] not in ".!?":
        cited[-1] += "."
    return cited


def write_paraphrase(turn: Turn) -> Draft:
    """Every piece of evidence in slightly other words: numbers, names and negations stay as they are."""
    return json_reply({"sentences": [_reworded(fence.body, turn) for fence in turn.prompt.tagged("evidence")]})


def _reworded(sentence: str, turn: Turn) -> str:
    def swap(found: re.Match[str]) -> str:
        other = _OTHER_WORDS[found[0].casefold()]
        return other.capitalize() if found[0][0].isupper() else other

    printable = "".join(letter for letter in sentence if letter.isprintable() or letter.isspace())
    changed = _SWAPS.sub(swap, printable)
    if changed != printable and turn.random.random() < 0.5:
        return changed
    return f"{turn.pick(PLAIN.openers)} {changed}"


def write_plain(turn: Turn) -> Draft:
    """A few sentences on the question, for prompts that ask for no known form."""
    return Draft(draw_trace(turn, "this", PLAIN).written(_PLAIN_WORDS))


def write_held(schema: Mapping[str, Any]) -> Draft:
    """The shortest reply that fits a schema, for a prompt that asks for no known form.

    >>> write_held({"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}}}).text
    '{"a":"x","b":false}'
    """
    return Draft(msgspec.json.encode(_shortest(schema)).decode())


def _shortest(schema: Mapping[str, Any]) -> object:
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _shortest(schema["anyOf"][0])
    match schema.get("type"):
        case "object":
            return {name: _shortest(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_shortest(schema["items"])] * schema.get("minItems", 0)
        case "string":
            least = schema.get("minLength", 1)
            return (_HELD_WORDS * (least // len(_HELD_WORDS) + 1))[: max(least, 5)] if "pattern" not in schema else "0"
        case "number" | "integer":
            return schema.get("minimum", 0)
        case "boolean":
            return False
    return None
