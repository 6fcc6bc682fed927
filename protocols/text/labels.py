"""Label canonicaliser: from the text of a model or a file to a label of the closed set.

`canonical_label` reads what names a label and nothing else, from files and replies. `leading_label` also takes a label
at the start of a longer answer; it applies only to replies.
"""

from __future__ import annotations

import re
from functools import lru_cache

from moot.protocols.text.unicode_form import nfkc

_YES_NO = {"yes": ("yes", "true", "y", "correct"), "no": ("no", "false", "n", "incorrect")}
_EDGE = " \t\r\n\"'`*_.,:;!?()[]{}<>\u2018\u2019\u201c\u201d\u00ab\u00bb"
# after the letter: a bracket, or a mark that ends there; not "A.I.", "1.5", "3:1" or "A-level"
_LETTERED = re.compile(r"(?:option|choice|answer)?\s*\(?([a-z0-9])\s*(?:\)|[.:\-\u2013\u2014](?=\s|$)|$)")
_WITH_ANOTHER = re.compile(r"\s*(?:(?:and|or|nor)\s|[/&|+,])\s*")


def fold(text: str) -> str:
    """Folded text for comparing labels: NFKC, no surrounding quotes or marks, lower case, single spaces.

    The point of a decimal number is no surrounding mark, even in front.

    >>> fold('  "Yes." '), fold("(.5)")
    ('yes', '.5')
    """
    plain = nfkc(text)
    bare = plain.strip(_EDGE)
    if bare[:1].isdigit() and _ends_in_point(plain[: len(plain) - len(plain.lstrip(_EDGE))]):
        bare = f".{bare}"
    return " ".join(bare.casefold().split())


def _ends_in_point(edge: str) -> bool:
    """Whether an edge ends in a single point: several are no decimal point."""
    return edge.endswith(".") and not edge.endswith("..")


@lru_cache(maxsize=4096)
def _surface_forms(
    labels: tuple[str, ...], choices: tuple[str, ...], aliases: tuple[tuple[str, ...], ...]
) -> dict[str, str]:
    forms: dict[str, str] = {}
    for label, spellings in zip(labels, aliases, strict=False):
        for spelling in spellings:
            forms.setdefault(fold(spelling), label)
    for label, choice in zip(labels, choices, strict=False):
        forms.setdefault(fold(choice), label)
    for label in labels:
        for form in _YES_NO.get(fold(label), ()) if len(labels) <= 3 else ():
            forms.setdefault(form, label)
    for label in labels:
        forms[fold(label)] = label
    forms.pop("", None)
    return forms


def surface_forms(
    labels: tuple[str, ...], choices: tuple[str, ...] = (), aliases: tuple[tuple[str, ...], ...] = ()
) -> dict[str, str]:
    """Labels by folded spelling.

    Where one spelling would mean several labels, a label's own name goes before aliases, those before the texts of
    choices, and those before yes/true and no/false, which only sets of at most three labels have.

    >>> surface_forms(("Yes", "No"))["true"]
    'Yes'
    """
    return dict(_surface_forms(labels, choices, aliases))


def canonical_label(
    text: str, labels: tuple[str, ...], choices: tuple[str, ...] = (), aliases: tuple[tuple[str, ...], ...] = ()
) -> str | None:
    """Label that `text` names, or None when it names none of the set.

    Accepts the label itself, its aliases (those given, in the labels' order, and yes/true ...), a lettered form
    such as `B) ...`, and the whole text of a choice. It never searches inside a sentence: "not B" is no answer, and
    "(A) and (B)" none either.

    >>> canonical_label("B) because", ("A", "B"))
    'B'
    >>> canonical_label("TRUE", ("Yes", "No"))
    'Yes'
    >>> canonical_label("chickenpox", ("Flu", "Varicella"), aliases=(("influenza",), ("chickenpox",)))
    'Varicella'
    >>> canonical_label("not sure", ("Yes", "No")) is None
    True
    """
    forms = _surface_forms(labels, choices, aliases)
    folded = fold(text)
    if folded in forms:
        return forms[folded]
    plain = nfkc(text).strip("\"'`*_ \t\r\n\u2018\u2019\u201c\u201d")
    plain = plain.casefold()
    lettered = _LETTERED.match(plain)
    if lettered is None:
        return None
    label = forms.get(lettered.group(1))
    joined = _WITH_ANOTHER.match(plain, lettered.end())
    another = joined and _LETTERED.match(plain, joined.end())
    return None if another and forms.get(another.group(1), label) != label else label


_OPENING = " \t\r\n\"'`*_([{<\u2018\u2019\u201c\u201d\u00ab\u00bb\u300c\u300e"
_CLOSING = "\"'`*_)]}>\u2018\u2019\u201c\u201d\u00ab\u00bb\u300d\u300f"
_BRACKETS = ")]}\u300d\u300f"
# of scripts that put no blank after a mark, and of those that do: none of them occurs inside a word or a number
_FULL_MARKS = "\u3001\u3002\u060c\u061b\u0964\u1362\u1363"
_BEFORE_ANYTHING_BUT_DIGITS = ",;!"
_BEFORE_A_BLANK = ".:-\u2013\u2014"
_JOINED_TO_ANOTHER = re.compile(r"(?:(?:and|or|but|not|nor|maybe|perhaps|possibly)\s+|[/&|+]\s*)+")
_NEW_LINE = re.compile(r"[ \t]*[\r\n]\s*(?=(\S))")
_LINE = "\n"
_LONGEST_LEAD = 64
"""Characters of quotes, brackets and blanks that may precede a label."""


def leading_label(
    text: str, labels: tuple[str, ...], choices: tuple[str, ...] = (), aliases: tuple[tuple[str, ...], ...] = ()
) -> str | None:
    """Label at the start of an answer, followed by a delimiter; None without one, or if it is ambiguous.

    A delimiter is a comma, full stop, colon, semicolon, exclamation mark, dash, closing or opening bracket, or a new
    line; one inside a number or a word (`1.5`, `A-level`) is none. Where labels begin alike, the longest that fits
    counts. An answer that another label follows in (`A or B`, `No, not sure`) names none. Nothing is searched for
    elsewhere in the text: "No evidence either way" is not No.

    >>> leading_label("No, the meeting was moved", ("Yes", "No")), leading_label("(B) because", ("A", "B"))
    ('No', 'B')
    >>> leading_label("No evidence either way", ("Yes", "No")) is None
    True
    >>> leading_label("Not sure: the text is silent", ("Yes", "No", "Not sure"))
    'Not sure'
    """
    forms = _surface_forms(labels, choices, aliases)
    if not forms:
        return None
    longest = max(map(len, forms))
    lead = text[: len(text) - len(text.lstrip(_OPENING))]
    if len(lead) > _LONGEST_LEAD:
        return None
    # Folding shortens a text at most to a third of its length, without blanks: that much of it decides.
    start = _folded_start(text[len(lead) :][: 8 * longest + 512])
    fitting = {form: rest for form in forms if (rest := _after(form, start)) is not None}
    if not fitting:
        return None
    form = max(fitting, key=len)
    label, rest = forms[form], fitting[form]
    if _goes_on_with_another(rest, label, forms) or _may_become_another(form, start, forms):
        return None
    return label


def _folded_start(text: str) -> str:
    """Folded start of a text, with its marks; a line break between sentences is kept."""
    plain = _NEW_LINE.sub(lambda found: " " if found[1].islower() else _LINE, nfkc(text))
    return _LINE.join(" ".join(line.split()) for line in plain.casefold().split(_LINE))


def _after(form: str, text: str) -> str | None:
    """Rest of a text after a label's spelling and the delimiter; None without a delimiter."""
    if not text.startswith(form):
        return None
    rest = text[len(form) :]
    bare = rest.lstrip(_CLOSING)
    if any(mark in _BRACKETS for mark in rest[: len(rest) - len(bare)]):
        return bare.lstrip(" " + _CLOSING + ",;:.-\u2013\u2014")
    spaced = bare.lstrip(" ")
    mark, then = spaced[:1], spaced[1:2]
    if not mark:
        return ""
    if mark == "." and spaced[1:].lstrip(" ")[:1].isdigit():
        return None  # "No. 5"
    ends = (
        mark in _FULL_MARKS
        or mark == _LINE
        or (mark in "([" and spaced != bare)
        or (mark in _BEFORE_ANYTHING_BUT_DIGITS and not then.isdigit())
        or (mark in _BEFORE_A_BLANK and (not then or then in " \n" or not then.isascii()))
    )
    return spaced[1:].lstrip() if ends else None


def _goes_on_with_another(rest: str, label: str, forms: dict[str, str]) -> bool:
    """Whether another label follows as a word of its own, as in `A, B and C` or `yes, but no`."""
    joined = _JOINED_TO_ANOTHER.match(rest)
    starts = (rest, rest[joined.end() :]) if joined else (rest,)
    for start in starts:
        bare = start.lstrip(_OPENING)
        for form, other in forms.items():
            if other == label or not bare.startswith(form):
                continue
            after = bare[len(form) :].lstrip(_CLOSING)
            alone = _after(form, bare) is not None or _JOINED_TO_ANOTHER.match(after.lstrip(" ")) is not None
            if alone or (joined is not None and start is not rest and not after[:1].isalnum()):
                return True
    return False


def _may_become_another(form: str, text: str, forms: dict[str, str]) -> bool:
    """Whether the text also follows, for a word beyond the delimiter, a longer spelling of another label."""
    for longer, other in forms.items():
        if other == forms[form] or len(longer) <= len(form) or not longer.startswith(form):
            continue
        mark_and_word = re.match(r"\W*\w+", longer[len(form) :])
        if mark_and_word and not mark_and_word[0][0].isalnum() and text[len(form) :].startswith(mark_and_word[0]):
            return True
    return False
