"""Verdict words: words by which a judge's summary reveals its verdict, and a summary without them.

A classifier of summaries may merely read the verdict. Its accuracy without these words is an upper bound for the signal
of the argument itself: no list of words is complete, so some of it may still be the verdict.
"""

from __future__ import annotations

import re

VERDICT_STEMS = (
    "accura", "affirm", "corroborat", "contradict", "debunk", "disprov", "distort", "erroneous", "exaggerat",
    "fabricat", "factual", "falsif", "fictiti", "groundless", "hallucinat", "inaccura", "incorrect", "implausib",
    "invalid", "justif", "mischaracter", "misconception", "mislead", "misrepresent", "mistak", "nonfactual", "overstat",
    "refut", "substantiat", "truthful", "undermin", "unfactual", "unjustif", "unsubstantiat", "untenab", "untruthful",
    "unverif", "unwarrant", "validat", "verif",
)  # fmt: skip
"""Word stems, with any ending."""

VERDICT_WORDS = (
    "accept", "accepted", "accepts", "agree", "agreed", "agrees", "authentic", "backed", "backs", "baseless", "bogus",
    "compatible", "confirm", "confirmation", "confirmed", "confirming", "confirms", "conflict", "conflicted",
    "conflicting", "conflicts", "consistent", "correct", "correctly", "correctness", "credible", "denied", "denies",
    "deny", "disagree", "disagreed", "disagrees", "doubtful", "dubious", "endorse", "endorsed", "endorses", "erred",
    "error", "errors", "errs", "fail", "failed", "failing", "fails", "fake", "faked", "fakes", "false", "falsehood",
    "falsehoods", "falsely", "falsity", "genuine", "grounded", "hold", "holding", "holds", "ill-founded",
    "incompatible", "inconsistent", "invented", "legitimate", "made-up", "match", "matched", "matches", "matching",
    "misled", "mismatch", "mismatched", "mismatches", "misstated", "misstates", "myth", "mythical", "myths",
    "neither", "no", "none", "plausible", "plausibly", "proof", "prove", "proved", "proven", "proves", "proving",
    "reject", "rejected", "rejecting", "rejects", "right", "rightly", "sound", "spurious", "stand", "standing",
    "stands", "support", "supported", "supporting", "supports", "sustain", "sustained", "sustains", "true", "truth",
    "unconfirmed", "unfounded", "ungrounded", "unlikely", "unproven", "unsound", "unsupported", "untrue", "untruth",
    "upheld", "uphold", "upholds", "valid", "validly", "warranted", "well-founded", "wrong", "wrongly", "yes",
    "at odds", "bear out", "bearing out", "bears out", "bore out", "borne out", "hold up", "hold water", "holds up",
    "holds water", "ill founded", "in keeping", "in line", "line up", "lines up", "made up", "rule out", "ruled out",
    "rules out", "stand up", "stands up", "well founded",
)  # fmt: skip
"""Exact words and phrases. All are case-insensitive; a preceding negation, modal or prefix ("could not be", "non-",
"well-") is masked with the word, and so is an auxiliary, which would reveal its absence."""

MASK = "\N{HORIZONTAL ELLIPSIS}"
"""Replacement of a masked word."""

_AUXILIARY = (
    r"(?:is|are|was|were|be|been|being|do|does|did|has|have|had|can|could|may|might|must|need|shall|should|will|would)"
)
_NEGATION = (
    r"(?:not|never|hardly|scarcely|no\s+longer|cannot|(?:is|are|was|were|do|does|did|has|have|had|ca|could|might|must|"
    r"need|sha|should|wo|would)n['\u2019]?t|can['\u2019]t)"
)
_DEGREE = r"(?:at\s+all|clearly|directly|entirely|even|fully|in\s+any\s+way|really|well|wholly)"
_BEFORE = rf"(?:\b(?:{_AUXILIARY}|{_NEGATION}|{_DEGREE}|an?)\s+){{0,6}}"
_PREFIX = r"(?:(?:non|un|in|dis|mis|ill|well|half)-?)?"
_PHRASES = "|".join(re.escape(each).replace(r"\ ", r"\s+") for each in sorted(VERDICT_WORDS, key=len, reverse=True))
_STEMS = "|".join(VERDICT_STEMS)
_VERDICT = re.compile(rf"{_BEFORE}\b{_PREFIX}(?:(?:{_PHRASES})\b|(?:{_STEMS})\w*)", re.IGNORECASE)

_BLANK = " " * 8
_LONG_BLANK = re.compile(rf"\s{{{len(_BLANK) + 1},}}")
_NEIGHBOURS = re.compile(rf"{MASK}(?:(?:[\s,/]|\b(?:and|but|or)\b)+{MASK})+")

_BIT = r"(?:[01]\b(?!\.\d|\s*%)|(?:zero|nought|one)\b)"
_ENDS = r"""(?=\s*(?:[.,;:!?)\]"'\u2019\u201d*]|$)|\s+(?:as|for|here|on|to)\b)"""
_NAMED = re.compile(
    r"\b(?:verdict|label|ruling|judge?ment|decision|answer|class|rating|score)\b[^\w.!?;]{0,9}"
    rf"(?:(?:is|was|of|as|to|be|at|will|should|would|an?|number)\b[^\w.!?;]{{0,9}}){{0,5}}{_BIT}",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"\b(?:g[ai]v(?:e[sn]?|ing)|assign\w*|return\w*|rul(?:e[sd]?|ing)|rat(?:e[sd]?|ing)|scor(?:e[sd]?|ing)|"
    r"vot(?:e[sd]?|ing)|mark\w*|decid\w*|cho+s(?:es?|en|ing)|settle\w*|sa(?:ys?|id))\s+"
    rf"(?:(?:it|this|the\s+claim|as|for|on|with)\s+){{0,5}}(?:an?\s+)?[\"'\u2018\u201c*(]{{0,3}}{_BIT}{_ENDS}",
    re.IGNORECASE,
)
_POINTED = re.compile(rf"(?:->|=>|\u2192|\u21d2)\s*[\"'(]*{_BIT}", re.IGNORECASE)
_STATED = re.compile(
    r"\b(?:p|probability|probabilities|confidence|likelihood|chance|odds)\b[^.;!?\n]{0,80}?\b\d+(?:\.\d+)?(?:\s*%|\b)"
    r"|\b\d+(?:\.\d+)?\s*(?:%|percent|per\s+cent)?\s+(?:probability|confidence|confident|likelihood|chance|sure)\b",
    re.IGNORECASE,
)


def mask_verdict_words(text: str) -> str:
    """Replaces every verdict word, numeric verdict and stated probability in a text by `MASK`.

    >>> mask_verdict_words("The claim is not supported: verdict is 0. Both found 1 source wrong.")
    'The claim …: …. Both found 1 source ….'
    >>> mask_verdict_words("It cannot be borne out, as E2 debunks it.")
    'It …, as E2 … it.'
    >>> mask_verdict_words("Paris lies on the Seine in 100 of 100 documents.")
    'Paris lies on the Seine in 100 of 100 documents.'
    """
    text = _LONG_BLANK.sub(_BLANK, text)  # the patterns below try each length of a blank
    for given_away in (_STATED, _NAMED, _GIVEN, _VERDICT, _POINTED):
        text = given_away.sub(MASK, text)
    return _NEIGHBOURS.sub(MASK, text)
