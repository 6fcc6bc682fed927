"""The simulated judge under a rubric: counts sections, connectives and quotations of the reply, with noise.

It has no answer key and understands nothing: what a dimension asks is told by its name alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from moot.actors.models.simulated.argument import LEFT_UNDONE
from moot.actors.models.simulated.judges import content_words
from moot.actors.models.simulated.prompt import UNLABELLED, SeenPrompt
from moot.actors.models.simulated.turn import Draft, Turn, json_reply
from moot.protocols.rubrics.mark_sheet import FLAG, ISSUES, REASONING
from moot.protocols.selene.sentences import split_sentences

JUDGED = "judged_reply"
"""The tag around the reply in the prompt of a judge."""

_GIVEN = ("given", "known")
_INSTRUCTIONS = "instructions"
_ALL_SECTIONS = 4
_LONGEST_ISSUE = 90
_FEWEST_WORDS = 3
_SCALE = re.compile(r'"(\w+)": <(-?\d+) to (-?\d+)>')
_KEY = re.compile(r'"(\w+)": <')
_SECTION = re.compile(
    r"(?:^|(?<=[.!?]))[ \t#*_>-]*([A-Z][A-Za-z-]{2,20}(?: [A-Za-z-]{2,20}){0,2})[*_]{0,2}:", re.MULTILINE
)
_CONNECTIVE = re.compile(r"\b(?:because|therefore|so|since|hence|which shows|thus)\b", re.IGNORECASE)
_QUOTED = re.compile(r'"([^"\n]+)"|\u201c([^\u201d\n]+)\u201d')
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Counted:
    """What can be counted of a reply.

    Attributes:
        sections: labels such as `Claim:`, each once; of an argument that was asked for without any as many as all, one
            less where it says that it leaves something undone.
        connectives: sentences with a word such as `because`.
        quoted: spans in double quotes, of three words or more, that occur in what was given.
        invented: such spans that do not.
        covered: share of the reply's content words that were given, in [0, 1]; 0.5 where there is nothing to compare.
    """

    sections: int
    connectives: int
    quoted: int
    invented: tuple[str, ...]
    covered: float


def write_marks(turn: Turn) -> Draft:
    """A sheet with the keys that the prompt asks for; scores go by what can be counted of the reply.

    They are 1 to 3, mapped to the scale of each dimension. A name with `instruction` in it goes by sections (4, 3) or,
    where an argument without any was asked for, by whether it says that it leaves something undone; one with
    `justification` by connectives (2, 1), one with `evidence`, `grounding` or `support` by quotations (2, 1), any other
    by the share of words that were given (.6, .3).
    A quotation that was not given is flagged. With a probability of the judge's noise a score is one level off, and a
    flag is overlooked; at temperature 0, too, so that two judges differ.
    """
    form, noise = turn.prompt.sent[0], turn.settings.judge_noise
    counted = _count(turn.prompt)
    overlooked = turn.random.random() < noise
    invented = () if overlooked else counted.invented
    values: dict[str, int | str] = {}
    for name, lowest, highest in _SCALE.findall(form):
        score = round(int(lowest) + (_reading(name, counted) - 1) / 2 * (int(highest) - int(lowest)))
        # Each draw is made in any case, so that one dimension's noise does not shift that of the next.
        moved, up = turn.random.random() < noise, turn.random.random() < 0.5
        values[name] = min(int(highest), max(int(lowest), score + (1 if up else -1))) if moved else score
    values[FLAG] = int(bool(invented))
    values[ISSUES] = f"Quotes what was not given: {_short(invented[0])}" if invented else ""
    values[REASONING] = (
        f"Labelled sections: {counted.sections}; sentences that give a reason: {counted.connectives}. "
        f"Quotations found in what was given: {counted.quoted}, not found: {len(invented)}."
    )
    return json_reply({key: values[key] for key in dict.fromkeys(_KEY.findall(form)) if key in values})


def _count(prompt: SeenPrompt) -> _Counted:
    reply = "\n".join(fence.body for fence in prompt.tagged(JUDGED))
    material = "\n".join(fence.body for fence in prompt.tagged(*_GIVEN))
    shown = "\n".join(fence.body for fence in prompt.fences if fence.tag != JUDGED)
    spans = [first or second for first, second in _QUOTED.findall(reply)]
    spans = [span for span in spans if len(_WORD.findall(span)) >= _FEWEST_WORDS]
    given, anywhere, words = _words(material), _words(shown), content_words(reply)
    return _Counted(
        sections=_sections(prompt, reply),
        connectives=sum(bool(_CONNECTIVE.search(sentence)) for sentence in split_sentences(reply)),
        quoted=len({_words(span) for span in spans if _words(span) in given}),
        invented=tuple(span for span in spans if _words(span) not in anywhere),
        covered=len(words & content_words(material)) / len(words) if words and material else 0.5,
    )


def _sections(prompt: SeenPrompt, reply: str) -> int:
    if any(UNLABELLED in fence.body for fence in prompt.tagged(_INSTRUCTIONS)):
        return _ALL_SECTIONS - (LEFT_UNDONE in reply)
    return len({label.casefold() for label in _SECTION.findall(reply)})


def _reading(dimension: str, counted: _Counted) -> int:
    """1 to 3, by what the dimension's name says that it is about."""
    if "instruction" in dimension:
        return _level(counted.sections, (_ALL_SECTIONS, _ALL_SECTIONS - 1))
    if "justification" in dimension:
        return _level(counted.connectives, (2, 1))
    if any(word in dimension for word in ("evidence", "grounding", "support")):
        return _level(counted.quoted, (2, 1))
    return _level(counted.covered, (0.6, 0.3))


def _level(found: float, bounds: Sequence[float]) -> int:
    """3 from the first bound on, 2 from the second, else 1."""
    return 3 - next((step for step, bound in enumerate(bounds) if found >= bound), len(bounds))


def _words(text: str) -> str:
    """Its words in lower case, set apart so that a span is found at whole words only."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _short(text: str) -> str:
    """The printable beginning of a quotation."""
    return "".join(letter for letter in text if letter.isprintable())[:_LONGEST_ISSUE]
