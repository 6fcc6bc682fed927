"""The simulated judges of evidence, of two texts, and of a document: they share out words, with noise.

None has an answer key or understands anything; see `moot.protocols.crit` for what a reading of a document is used for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.actors.models.simulated.turn import Draft, Turn, json_draft, json_reply
from moot.protocols.selene.sentences import split_sentences

_WORD = re.compile(r"\w{3,}")
_COMMON = frozenset(
    _WORD.findall(
        "the and for are was were has have had does did that this these those with from into which what who"
        " whom whose when where why how can could will would shall should may might must not but its there"
        " their than then"
    )
)
_OF_THE_PROMPT = frozenset({"answer", "question"})
"""Words with which a prompt states the candidate; the evidence need not have them."""

_SUPPORTED, _CONTRADICTED = 0.6, 0.4
_SUPPORTS = ("supported", "contradicted", "not covered")

_LOWEST, _SPAN = 0.35, 0.4
_SHOWN, _MOST = 80, 5

_MOST_REASONS, _MOST_RIVALS = 4, 2
_LONGEST_TEXT = 90
_MATERIAL_CHARACTERS = 20_000
_CLAIM_SHARE = 0.25
_WHY = {True: "It denies a given fact.", False: "Measured by the words that it shares with the claim and the facts."}
_DENIED = re.compile(r"\b(?:no|not|without|never|absence of|absent) (?:any |an? )?(\w{3,})", re.IGNORECASE)


def content_words(text: str) -> frozenset[str]:
    """The words of a text in lower case, without short and common ones."""
    return frozenset(_WORD.findall(text.casefold())) - _COMMON


def share_of(words: frozenset[str], known: frozenset[str]) -> float:
    """The share of the words that are known, in [0, 1]; 0.5 where there are none."""
    return len(words & known) / len(words) if words else 0.5


def write_support(turn: Turn) -> Draft:
    """Evidence on an answer: a score by the share of the claim's words that the evidence has, plus noise.

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
    return json_draft(prompt.form, {"support": support, "score": score, "rationale": rationale}, "support", belief)


def write_comparison(turn: Turn) -> Draft:
    """Marks of two texts from 0 to 10, whole numbers, without favour for the first; on every topic, if asked for.

    A mark is 3.5 + 4 x the share of the facts' words that the text has, plus ten times the judge's noise.
    """
    prompt = turn.prompt
    if "topic" not in prompt.form:
        one, other = (_compared(turn, place) for place in ("first", "second"))
        return json_reply({"first": one, "second": other, "rationale": _rationale(one, other)})
    told = {place: prompt.tagged(place) for place in ("first", "second")}
    marks = [
        {"topic": number, **{place: _compared(turn, place, str(number)) for place in told}}
        for number in range(1, len(prompt.tagged("topic")) + 1)
    ]
    first, second = (sum(int(pair[place]) for pair in marks) for place in told)
    stances = [fence.attributes.get("stance", "") for fence in told["first"]]
    return json_reply(
        {
            "claim": f"The first debater's stance: {' '.join(stances[:1])}.",
            "arguments": [fence.body[:_SHOWN] for fence in told["first"][:_MOST]],
            "counterarguments": [fence.body[:_SHOWN] for fence in told["second"][:_MOST]],
            "marks": marks,
            "rationale": _rationale(first, second),
        }
    )


def _compared(turn: Turn, place: str, topic: str | None = None) -> int:
    facts = content_words(turn.prompt.passage or turn.prompt.question)
    said = [f.body for f in turn.prompt.tagged(place) if topic is None or f.attributes.get("topic") == topic]
    return round(turn.mark(_LOWEST + _SPAN * share_of(facts, content_words(" ".join(said)))))


def _rationale(first: float, second: float) -> str:
    if first == second:
        return "Both make equally much of what is given."
    return f"The {'first' if first > second else 'second'} makes more of what is given."


def write_reading(turn: Turn) -> Draft:
    """A document as CRIT asks: its sentences are reasons, what only the other side says are rivals.

    A mark is 1 + 8 times a share of words, plus ten times the judge's noise, cut to 0 to 10: for the validity the share
    of the sentence's words that claim and facts have, for the credibility the share that the facts alone have, or one
    half where there are none. At temperature 0 there is no noise. A sentence that denies a word which the facts state
    is said to contradict them; a quarter of the others are called claims. All has at most about 400 tokens.
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
        "justification": f"{len(reasons)} sentences speak for the claim, {len(rivals)} against it.",
        "reflection": "Where other facts are given, the same sentences would weigh differently.",
    }
    return turn.filled(values)


def _argument(text: str, claim: str, turn: Turn) -> dict[str, str | float | bool]:
    given = turn.prompt.first("facts")
    words, facts = content_words(text), content_words(given)
    denied = {word.casefold() for word in _DENIED.findall(text)}
    contradicts = bool(denied & (facts - {word.casefold() for word in _DENIED.findall(given)}))
    # Each draw is made in any case, so that one reason's marks do not shift those of the next.
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


def _some(sentences: Sequence[str], most: int, turn: Turn) -> list[str]:
    """At most so many of the sentences, in their order."""
    if len(sentences) <= most:
        return list(sentences)
    return [sentences[place] for place in sorted(turn.random.sample(range(len(sentences)), most))]


def _short(text: str) -> str:
    """The printable beginning of a sentence, ended between two words where there is a space."""
    plain = "".join(letter for letter in text if letter.isprintable())
    if len(plain) <= _LONGEST_TEXT:
        return plain
    return plain[:_LONGEST_TEXT].rpartition(" ")[0] or plain[:_LONGEST_TEXT]
