"""Agreement language of a text: a count of words, to see whether a model reacts to contentiousness at all.

It is a crude instrument on purpose: it needs no model, is the same for everyone, and can be checked by eye. It measures
words, not agreement; compare it between levels of one model, never between models or languages other than English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_AGREEING = re.compile(
    r"\b(agree[sd]?|agreeable|agreement|concede[sd]?|conceding|granted|common ground|good point|fair point|valid point|"
    r"you are right|rightly|helpful|gladly|warmly|together|of one mind|support(?:s|ed)? your|accept(?:s|ed)?|"
    r"compatible|consensus|share your|reasonable|on balance|go along)\b"
)
_OPPOSING = re.compile(
    r"\b(disagree[sd]?|disagreement|reject(?:s|ed)?|refute[sd]?|wrong|mistaken|error|flaw(?:s|ed)?|unfounded|unproven|"
    r"untenable|unacceptable|indefensible|implausible|fails?|fallacy|ignores?|overlooks?|contradict(?:s|ed)?|"
    r"dispute[sd]?|collapses?|doubts?|gap|unlikely|not hold)\b"
)
_NEGATED = re.compile(r"\b(?:not|never|cannot|can't|don't|do not|hardly|no)\s+(?:\w+\s+)?$")


def agreement_share(texts: Iterable[str]) -> float | None:
    """Agreeing words over agreeing and opposing ones, in [0, 1]; None when a text has neither.

    An agreeing word just after a negation counts as opposing; an opposing one just after a negation counts as nothing.

    >>> agreement_share(["I agree that this fits.", "Your second claim is wrong."])
    0.5
    >>> agreement_share(["I cannot agree."]), agreement_share(["The rash is red."])
    (0.0, None)
    """
    agreeing = opposing = 0
    for text in map(str.lower, texts):
        for found in _AGREEING.finditer(text):
            if _NEGATED.search(text, max(0, found.start() - 30), found.start()):
                opposing += 1
            else:
                agreeing += 1
        for found in _OPPOSING.finditer(text):
            opposing += not _NEGATED.search(text, max(0, found.start() - 30), found.start())
    return agreeing / (agreeing + opposing) if agreeing + opposing else None
