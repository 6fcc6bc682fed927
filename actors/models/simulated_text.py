"""The words of simulated replies: reasoning traces from the passage, paraphrases, and plain text."""

from __future__ import annotations

import json
import re
from random import Random

from moot.actors.models.simulated_draft import Draft
from moot.actors.models.simulated_draws import stable_uniform
from moot.actors.models.simulated_prompt import SeenPrompt

_MATERIAL_CHARACTERS = 20_000
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_OPENERS = (
    "The passage says that",
    "According to the text,",
    "The decisive point is this:",
    "It is stated that",
)
_CLOSERS = (
    "Hence the answer is {}.",
    "That speaks for {}.",
    "So {} follows.",
    "This makes {} the better answer.",
)
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


def reasoning(prompt: SeenPrompt, answer: str, words: int, random: Random) -> str:
    """A trace of about `words` words that cites the passage, or the question when there is none.

    Agents with the same answer mostly cite the same place, so that agreement shows in the text as well.
    """
    sentences = _SENTENCE_END.split((prompt.passage or prompt.question)[:_MATERIAL_CHARACTERS].strip())
    place = stable_uniform("place", prompt.question, answer)
    if random.random() < 0.2:
        place = random.random()
    opener = _OPENERS[int(random.random() * len(_OPENERS))].split()
    closer = _CLOSERS[int(random.random() * len(_CLOSERS))].format(answer).split()
    cited = _cited(sentences, int(place * len(sentences)), words - len(opener) - len(closer))
    return " ".join([*opener, *cited, *closer][-words:])


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


def write_paraphrase(prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
    """Every piece of evidence in slightly other words: numbers, names and negations stay as they are."""
    sentences = [_reworded(sentence, random) for sentence in prompt.evidence]
    return Draft(json.dumps({"sentences": sentences}, ensure_ascii=False))


def _reworded(sentence: str, random: Random) -> str:
    def swap(found: re.Match[str]) -> str:
        other = _OTHER_WORDS[found[0].casefold()]
        return other.capitalize() if found[0][0].isupper() else other

    printable = "".join(letter for letter in sentence if letter.isprintable() or letter.isspace())
    changed = _SWAPS.sub(swap, printable)
    if changed != printable and random.random() < 0.5:
        return changed
    return f"{_OPENERS[int(random.random() * len(_OPENERS))]} {changed}"


def write_plain(prompt: SeenPrompt, random: Random, greedy: bool) -> Draft:
    """A few sentences on the question, for prompts that ask for no known form."""
    return Draft(reasoning(prompt, "this", 40, random))
