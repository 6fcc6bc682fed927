"""Simulated speaker of a debate of arguments: an argument of a drawn quality, and tokens that may correlate with it.

The quality of a reply is drawn first. It determines the text (quotations, connectives, sections, or an omission without
them, sometimes an invented quotation) and, scaled by `confidence_signal`, the confidence of the tokens, but nothing
else. It is independent of the position's correctness and of the number of tokens: without the signal, no statistic of
the tokens separates good replies from bad ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from moot.actors.simulated.belief import independent
from moot.actors.simulated.prompt import ParsedPrompt
from moot.actors.simulated.tokens import split_text
from moot.actors.simulated.turn import ReplyDraft, SimulatedTurn
from moot.protocols.seeds import stable_uniform
from moot.protocols.text.numbers import stated_number

_MATERIAL_CHARACTERS = 20_000
_SPAN = re.compile(r"(?<![\w'-])[A-Za-z][\w'-]*(?:,? [\w'-]+){3,6}")
_FOR = "What is given speaks for {}."
_ARGUED_FOR = re.compile(re.escape(_FOR).replace(r"\{\}", r"(.+?)") + "$", re.MULTILINE)
_FINAL, _NO_SCORE = '"Final answer: "', "give no score"
_QUOTES = (0.15, 0.35, 0.7)
_LINKS = (0.15, 0.4, 0.75)
_GAP_BELOW, _GAP_SHARE = 0.3, 0.6
_PARTS = ("Claim", "Evidence", "Reasoning", "Conclusion")
_DERIVED = ("Evidence", "Reasoning", "Claim", "Conclusion")
_DERIVES = re.compile(r"\b(?:Derive|Work) first, then state\b")
_ALSO_CALLED = {"Challenge": "Claim", "Counter-Evidence": "Evidence"}
LEFT_UNDONE = "The rest of what was asked is left to others."
"""Marks an argument without labels that omits a part of the instructions."""

_INVENTS, _INVENTS_WORST = 0.02, 0.1
_WORDS_PER_TOKEN = 0.8
_SPREAD = 0.3
_LONGEST_SPAN, _MOST_SAID = 12, 96
"""Tokens of a quotation, and most tokens that quality adds to evidence and reasoning."""

_CITING = ('It says "{}".', 'Then there is "{}".', 'It also says "{}".')
_VAGUE = "Much in the material points this way."
_LINKING = (
    "This counts because it stands in the material.",
    "It leaves no other reading, and therefore it carries weight.",
    "The rest agrees with it; hence the claim holds.",
)
_ASSERTING = ("It is plain enough.", "Nobody would doubt it.", "That is how it is.")
_INVENTED = (
    "as the committee found in its second report",
    "nine in ten of those asked agreed at once",
    "nothing of the kind was ever recorded there",
)
_FILLING = (
    "the material can be read with care here",
    "other parts of it say little about the matter",
    "a quick reader may pass over this point",
    "each line deserves a second look",
    "the wording is plain where it needs to be",
    "one may ask what else could have been meant",
    "some details matter less than they seem to at first",
    "the order of the parts adds little to this",
    "what comes before it does not change the picture",
    "much depends on the words that were chosen",
    "a list of all places would be long",
    "the end of it is not as clear as the beginning",
)
_LAST = (
    "indeed",
    "it stands",
    "that is clear",
    "little else is said",
    "the rest is much alike",
    "there is not much more here",
    "the rest of it adds very little",
    "none of the other places is any clearer",
    "what is left of it can wait for now",
    "all that is left is of no great weight here",
    "the other lines are about other things and can be left",
    "a longer look at all of it would not bring much more",
)
"""Filler sentences of one-token words; the n-th sentence has n of them."""


def write_argument(turn: SimulatedTurn) -> ReplyDraft:
    """Writes an argument in the requested sections, or in four paragraphs, each of about `reasoning_words` words.

    It is never shorter than the fullest argument needs: otherwise length would reveal quality.
    """
    prompt, random = turn.prompt, turn.random
    position = _position(turn)
    quality = random.random()
    evidence, links = _evidence(quality, turn), _drawn(quality, _LINKS, random)
    bodies = [position, evidence, " ".join([*_LINKING[:links], *_ASSERTING[links:]]), _end(position, prompt)]
    frame = " ".join([position, bodies[3], *(f"{label}: " for label in prompt.sections)])
    unlabelled = _DERIVED if _DERIVES.search(prompt.instructions) else _PARTS
    sections = _in_order(prompt.sections, bodies, unlabelled)
    if quality < _GAP_BELOW and random.random() < _GAP_SHARE:
        # One requested part: the label of the last section but one or, without labels, something unnamed.
        if not prompt.sections:
            next(each for each in reversed(sections) if each.may_grow).body += f" {LEFT_UNDONE}"
        elif len(sections) > 2:
            sections[-2].label = ""
    least = (len(split_text(frame)) + _MOST_SAID) / (1.0 - _SPREAD / 2)
    length = max(least, len(sections) * turn.settings.reasoning_words / _WORDS_PER_TOKEN)
    wanted = round(length * (1.0 + _SPREAD * (random.random() - 0.5)))
    return ReplyDraft(_filled(sections, wanted, random), surety=quality * turn.settings.confidence_signal)


def _position(turn: SimulatedTurn) -> str:
    prompt, sent = turn.prompt, "\n".join(turn.prompt.sent)
    arguments = prompt.tagged("argument")
    criterion = prompt.tagged("criterion")
    if criterion or _NO_SCORE in sent:
        trait = criterion[0].attributes.get("trait", "") if criterion else ""
        falls = "falls short of" if arguments else "meets"
        return f"The text {falls} what is expected{f' in {trait}' if trait else ''}."
    stance = independent(turn)
    if _FINAL in sent:
        return _FOR.format(as_number(stance.answer, prompt.question))
    # For the answer it believes in most, except for the one that the other argues for.
    claimed = argued_for(arguments[0].body) if arguments else None
    rivals = {answer: belief for answer, belief in stance.belief.items() if answer != claimed}
    return _FOR.format(max(rivals, key=rivals.__getitem__) if arguments and rivals else stance.answer)


def argued_for(argument: str) -> str | None:
    """Position of a simulated argument: its answer; None where it names none.

    >>> argued_for("Claim: What is given speaks for A. Lovelace.\\nEvidence: ...")
    'A. Lovelace'
    """
    found = _ARGUED_FOR.search(argument)
    return found[1] if found else None


def as_number(answer: str, question: str) -> str:
    """The answer itself if it states one number; otherwise a number that represents it for this question.

    >>> as_number("36 eggs", "How many?")
    '36 eggs'
    """
    if stated_number(answer) is not None:
        return answer
    return str(int(100 * stable_uniform("number", question, answer)))


def quotations(argument: str) -> list[str]:
    """Texts in double quotes in an argument."""
    return re.findall(r'"([^"]+)"', argument)


def _drawn(quality: float, steps: Sequence[float], random: Random) -> int:
    """Number of steps that a quality reaches, with noise of a tenth."""
    reached = quality + 0.2 * (random.random() - 0.5)
    return sum(reached >= step for step in steps)


def _evidence(quality: float, turn: SimulatedTurn) -> str:
    """Quotations from the material, more for higher quality; unquoted lines first, sometimes an invented one."""
    material = "\n".join(fence.body for fence in turn.prompt.tagged("passage", "question"))[:_MATERIAL_CHARACTERS]
    arguments = "\n".join(fence.body for fence in turn.prompt.tagged("argument"))
    count = _drawn(quality, _QUOTES, turn.random)
    found = [each for each in dict.fromkeys(_SPAN.findall(material)) if len(split_text(each)) <= _LONGEST_SPAN]
    turn.random.shuffle(found)
    cited = sorted(found, key=lambda span: span in arguments)[:count]
    if turn.random.random() < _INVENTS + _INVENTS_WORST * (1.0 - quality):
        cited[-1:] = [turn.pick(_INVENTED)]
    cited_text = [form.format(span) for form, span in zip(_CITING, cited, strict=False)]
    return " ".join(cited_text) or _VAGUE


def _end(position: str, prompt: ParsedPrompt) -> str:
    answer = argued_for(position)
    if answer is not None and _FINAL in "\n".join(prompt.sent):
        return f"That settles it.\nFinal answer: {answer}"
    return "The point stands."


@dataclass(slots=True)
class _Section:
    """Section of an argument; a growable one is padded with filler sentences."""

    label: str
    body: str
    may_grow: bool


def _in_order(labels: Sequence[str], bodies: Sequence[str], unlabelled: Sequence[str]) -> list[_Section]:
    """Section texts in the order of the labels: by name, else the first body under the first label.

    Without labels, the order is that of `unlabelled`.
    """
    names = [_ALSO_CALLED.get(label, label) for label in labels or unlabelled]
    known = sorted(names) == sorted(_PARTS)
    places = [_PARTS.index(name) for name in names] if known else list(range(min(len(names), len(bodies))))
    grows = {1, 2} if len(places) == len(_PARTS) else set(range(1, len(places) - 1)) or {0}
    shown = labels or [""] * len(places)
    return [_Section(label, bodies[place], place in grows) for label, place in zip(shown, places, strict=False)]


def _filled(sections: Sequence[_Section], wanted: int, random: Random) -> str:
    """Pads the growable sections to exactly `wanted` tokens in total, unless there are more already."""
    missing = max(0, wanted - len(split_text(_written(sections))))
    sentences = random.sample(_FILLING, len(_FILLING))
    growing = [each for each in sections if each.may_grow]
    for each in growing:
        share = missing // len(growing)
        if each is growing[-1]:
            share = missing - (len(growing) - 1) * share
        each.body += "".join(_filling(share, sentences))
    return _written(sections)


def _written(sections: Sequence[_Section]) -> str:
    return "\n".join(f"{each.label}: {each.body}" if each.label else each.body for each in sections)


def _filling(tokens: int, sentences: list[str]) -> Iterator[str]:
    """Filler sentences of exactly `tokens` tokens: a word or full stop is one token; a rest of one is dropped."""
    while tokens > 1:
        sentences.append(sentences.pop(0))
        words = (_LAST[tokens - 2] if tokens - 2 < len(_LAST) else sentences[-1]).split()
        if tokens == len(words) + 2:
            words.insert(0, "indeed")
        tokens -= len(words) + 1
        yield " " + " ".join([words[0].capitalize(), *words[1:]]) + "."
