"""Simulated judges of evidence, text pairs, documents and rubrics: word counts with noise.

None has an answer key or understands anything; see `moot.protocols.crit` for the use of a document's reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from moot.actors.simulated.argument import LEFT_UNDONE
from moot.actors.simulated.prompt import UNLABELLED, ParsedFence
from moot.actors.simulated.turn import DraftSignals, SimulatedTurn
from moot.protocols.rubrics.score_sheet import FLAG, ISSUES, REASONING
from moot.protocols.text.sentences import split_sentences

_WORD = re.compile(r"\w{3,}")
_COMMON = frozenset(
    _WORD.findall(
        "the and for are was were has have had does did that this these those with from into which what who"
        " whom whose when where why how can could will would shall should may might must not but its there"
        " their than then"
    )
)
_OF_THE_PROMPT = frozenset({"answer", "question"})
"""Words with which a prompt states the candidate; the evidence need not contain them."""

_SUPPORTED, _CONTRADICTED = 0.6, 0.4
_SUPPORTS = ("supported", "contradicted", "not covered")

_LOWEST, _SPAN = 0.35, 0.4

_MOST_REASONS, _MOST_RIVALS = 4, 2
_LONGEST_TEXT = 90
_MATERIAL_CHARACTERS = 20_000
_CLAIM_SHARE = 0.25
_WHY = {True: "It denies a given fact.", False: "Measured by the words that it shares with the claim and the facts."}
_DENIED = re.compile(r"\b(?:no|not|without|never|absence of|absent) (?:any |an? )?(\w{3,})", re.IGNORECASE)

JUDGED = "judged_reply"
"""Tag around the reply in the prompt of a rubric's judge."""

_ALL_SECTIONS, _FEWEST_WORDS = 4, 3
_SECTION = re.compile(
    r"(?:^|(?<=[.!?]))[ \t#*_>-]*([A-Z][A-Za-z-]{2,20}(?: [A-Za-z-]{2,20}){0,2})[*_]{0,2}:", re.MULTILINE
)
_CONNECTIVE = re.compile(r"\b(?:because|therefore|so|since|hence|which shows|thus)\b", re.IGNORECASE)
_QUOTED = re.compile(r'"([^"\n]+)"|\u201c([^\u201d\n]+)\u201d')


def content_words(text: str) -> frozenset[str]:
    """Content words of a text in lower case, without short and common ones."""
    return frozenset(_WORD.findall(text.casefold())) - _COMMON


def share_of(words: frozenset[str], known: frozenset[str]) -> float:
    """Share of the words that are known, in [0, 1]; 0.5 without words."""
    return len(words & known) / len(words) if words else 0.5


def support(turn: SimulatedTurn) -> DraftSignals:
    """Evidence support score: share of the claim's words that occur in the evidence, plus noise.

    It is in [0, 1] with two decimals: at least .6 is `supported`, at most .4 `contradicted`.
    """
    prompt = turn.prompt
    claim = content_words(f"{prompt.question} {prompt.first('candidate')} {prompt.first('rationale')}") - _OF_THE_PROMPT
    covered = [content_words(fence.body) & claim for fence in prompt.tagged("evidence")]
    share = share_of(claim, frozenset().union(*covered)) if covered else 0.5
    score = round(min(1.0, max(0.0, 0.1 + 0.8 * share + turn.noise())), 2)
    support = _SUPPORTS[0 if score >= _SUPPORTED else 1 if score <= _CONTRADICTED else 2]
    rationale = "No piece of evidence speaks of the claim."
    if any(covered):
        best = max(range(len(covered)), key=lambda place: len(covered[place]))
        terms = ", ".join(sorted(covered[best])[:5])
        rationale = f"Evidence {best + 1} is closest to the claim ({terms}), which is {support}."
    sure = 0.55 + 0.8 * min(0.5, abs(score - 0.5)) if support != "not covered" else 0.6
    belief = {name: sure if name == support else (1.0 - sure) / 2 for name in _SUPPORTS}
    return DraftSignals({"support": support, "score": score, "rationale": rationale}, "support", belief)


def comparison(turn: SimulatedTurn) -> DraftSignals:
    """Pairwise comparison: integer scores of two texts from 0 to 10, without position bias; per topic if requested.

    A score is 3.5 + 4 x the share of the facts' words in the text, plus ten times the judge's noise. A part of a text
    without a topic is on all of them.
    """
    prompt, facts = turn.prompt, content_words(turn.prompt.passage or turn.prompt.question)

    def marks(topic: str | None = None) -> dict[str, object]:
        texts_of = {
            place: [f.body for f in prompt.tagged(place) if topic is None or f.attributes.get("topic") in (None, topic)]
            for place in ("first", "second")
        }
        shares = {place: share_of(facts, content_words(" ".join(texts))) for place, texts in texts_of.items()}
        return {place: round(turn.mark(_LOWEST + _SPAN * share)) for place, share in shares.items()}

    if "marks" not in prompt.keys:
        return DraftSignals(marks())
    topics = range(1, len(prompt.tagged("topic")) + 1)
    return DraftSignals({"marks": [{"topic": number, **marks(str(number))} for number in topics]})


def reading(turn: SimulatedTurn) -> DraftSignals:
    """CRIT reading of a document: its sentences are reasons, sentences of the other side only are rivals.

    A score is 1 + 8 times a share of words, plus ten times the judge's noise, clipped to 0 to 10. For validity it is
    the share of the sentence's words in claim and facts, for credibility the share in the facts alone, or one half
    without facts. At temperature 0 there is no noise. A sentence that denies a word of the facts is reported to
    contradict them; a quarter of the others are called claims. The reading has at most about 400 tokens.
    """
    prompt = turn.prompt
    sentences = _sentences(prompt.first("document"))
    rivals = [sentence for sentence in _sentences(prompt.first("opposing")) if sentence not in sentences]
    claim = prompt.first("claim") or (sentences[0] if sentences else "")
    reasons = [sentence for sentence in sentences if sentence != claim]
    values = {
        "claim": _short(claim),
        "reasons": [_argument(text, claim, turn) for text in _some(reasons, _MOST_REASONS, turn)],
        "rivals": [_argument(text, claim, turn) for text in _some(rivals, _MOST_RIVALS, turn)],
    }
    return DraftSignals(values, about="the claim")


def _argument(text: str, claim: str, turn: SimulatedTurn) -> dict[str, str | float | bool]:
    given = turn.prompt.first("facts")
    words, facts = content_words(text), content_words(given)
    denied = {word.casefold() for word in _DENIED.findall(text)}
    contradicts = bool(denied & (facts - {word.casefold() for word in _DENIED.findall(given)}))
    # Draws are unconditional, so that one reason's scores do not shift those of the next.
    argument: dict[str, str | float | bool] = {
        "text": _short(text),
        "why": _WHY[contradicts],
        "validity": round(turn.mark(0.1 + 0.8 * share_of(words, content_words(claim) | facts)), 1),
        "credibility": round(turn.mark(0.1 + 0.8 * (share_of(words, facts) if facts else 0.5)), 1),
    }
    if turn.random.random() < _CLAIM_SHARE and not contradicts:
        argument["is_claim"] = True
    if contradicts:
        argument["contradicts_facts"] = True
    return argument


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in split_sentences(text[:_MATERIAL_CHARACTERS]) if _short(sentence)]


def _some(sentences: Sequence[str], most: int, turn: SimulatedTurn) -> list[str]:
    """At most `most` of the sentences, in their order."""
    if len(sentences) <= most:
        return list(sentences)
    return [sentences[place] for place in sorted(turn.random.sample(range(len(sentences)), most))]


def _short(text: str) -> str:
    """Printable beginning of a sentence, cut between two words where there is a space."""
    plain = "".join(letter for letter in text if letter.isprintable())
    if len(plain) <= _LONGEST_TEXT:
        return plain
    return plain[:_LONGEST_TEXT].rpartition(" ")[0] or plain[:_LONGEST_TEXT]


def marks(turn: SimulatedTurn) -> DraftSignals:
    """Rubric score sheet, with scores by counts over the reply alone.

    Scores are 1 to 3, mapped to the scale of each dimension. A dimension with `instruction` in its name scores labelled
    sections (4, 3) or, for an argument without sections, whether it declares an omission; with `justification`,
    sentences with a connective (2, 1); with `evidence`, `grounding` or `support`, quotations from the material (2, 1);
    any other, the share of words from the material (.6, .3).
    A quotation of three words or more that is not in the material is flagged. With a probability of the judge's noise a
    score is one level off, and a flag is missed; at temperature 0 too, so that two judges differ.
    """
    prompt, noise = turn.prompt, turn.settings.judge_noise
    reply, material = _joined(prompt.tagged(JUDGED)), _joined(prompt.tagged("given", "known"))
    spans = [first or second for first, second in _QUOTED.findall(reply)]
    spans = [span for span in spans if len(_plain_words(span).split()) >= _FEWEST_WORDS]
    given, words = _plain_words(material), content_words(reply)
    anywhere = _plain_words(_joined(fence for fence in prompt.fences if fence.tag != JUDGED))
    invented = [span for span in spans if _plain_words(span) not in anywhere]
    sections = len({label.casefold() for label in _SECTION.findall(reply)})
    if any(UNLABELLED in fence.body for fence in prompt.tagged("instructions", "given")):
        sections = _ALL_SECTIONS - (LEFT_UNDONE in reply)
    quoted = len({span for span in map(_plain_words, spans) if span in given})
    connectives = sum(bool(_CONNECTIVE.search(sentence)) for sentence in split_sentences(reply))
    read = {
        "instruction": _level(sections, (_ALL_SECTIONS, _ALL_SECTIONS - 1)),
        "justification": _level(connectives, (2, 1)),
        **dict.fromkeys(("evidence", "grounding", "support"), _level(quoted, (2, 1))),
        "": _level(share_of(words, content_words(material)) if material else 0.5, (0.6, 0.3)),
    }
    if turn.random.random() < noise:
        invented = []
    issue = "".join(letter for letter in invented[0] if letter.isprintable()) if invented else ""
    values: dict[str, object] = {
        FLAG: int(bool(invented)),
        ISSUES: f"Quotes what was not given: {issue[:_LONGEST_TEXT]}" if invented else "",
        REASONING: (
            f"Labelled sections: {sections}; sentences that give a reason: {connectives}. "
            f"Quotations found in what was given: {quoted}, not found: {len(invented)}."
        ),
    }
    for name, scale in (prompt.form or {}).get("properties", {}).items():
        if name not in values and scale.get("type") == "integer":
            lowest, highest = int(scale["minimum"]), int(scale["maximum"])
            level = next(level for word, level in read.items() if word in name)
            score = round(lowest + (level - 1) / 2 * (highest - lowest))
            # Draws are unconditional, so that one dimension's noise does not shift that of the next.
            moved, up = turn.random.random() < noise, turn.random.random() < 0.5
            values[name] = min(highest, max(lowest, score + (1 if up else -1))) if moved else score
    return DraftSignals(values, about="the reply")


def _level(found: float, bounds: Sequence[float]) -> int:
    """Level 3 from the first bound on, 2 from the second, else 1."""
    return 3 - next((step for step, bound in enumerate(bounds) if found >= bound), len(bounds))


def _joined(fences: Iterable[ParsedFence]) -> str:
    return "\n".join(fence.body for fence in fences)


def _plain_words(text: str) -> str:
    """Words in lower case, separated by spaces so that a search matches whole words only."""
    words = re.findall(r"\w+", text.casefold())
    return f" {' '.join(words)} "
