"""A label in front of a longer answer: what ends it, and what in the rest takes it back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from moot.protocols.text.folding import TYPOGRAPHY, fold, typed
from moot.protocols.text.unicode_form import nfkc

_OPENING = " \t\r\n\"'`*_([{\u2018\u2019\u201c\u201d\u00ab\u00bb\u300c\u300e"
_CLOSING = "\"'`*_)]}\u2018\u2019\u201c\u201d\u00ab\u00bb\u300d\u300f"
_BRACKETS = ")]}\u300d\u300f"
# of scripts that put no blank after a mark, and of those that do: none of them occurs inside a word or a number
_FULL_MARKS = "\u3001\u3002\u060c\u061b\u0964\u1362\u1363"
_BEFORE_ANYTHING_BUT_DIGITS = ",;!"
_BEFORE_A_BLANK = ".:-\u2013\u2014"
_JOINED_TO_ANOTHER = re.compile(r"(?:(?:and|or|but|not|nor|maybe|perhaps|possibly)\s+|[/&|+]\s*)+")
_AFTER_BRACKET = re.compile(rf"^(?:[{re.escape(_CLOSING)},;: ]|\.(?!\d)|[-\u2013\u2014](?=\s|$))+")
_OPINION = re.compile(
    r"because\b|is (?:the )?(?:correct|right|best)(?: (?:answer|choice|option))?\W*(?:$|[.;:(\n]|because\b|since\b)"
)
_NEW_LINE = re.compile(r"[ \t]*[\r\n]\s*(?=(\S))")
_LINE = "\n"
_LONGEST_LEAD = 64
"""Characters of quotes, brackets and blanks that may precede a label."""
_CLAUSE_END = re.compile(rf"[.,](?!\d)|[;:!?()\[\]{{}}\n/&|+{_FULL_MARKS}]|(?<!\S)[-\u2013\u2014](?!\S)")
_JOINERS = re.compile(
    r"(?:(?:and|or|but|not|nor|no|maybe|perhaps|possibly|actually|wait|rather|also|instead|because|it is|it's|i mean)"
    r"\s+)+"
)
_MOST_CLAUSES = 64
_TAIL = 256
"""Characters at the end of a long answer that are also read."""

_INITIAL = re.compile(r"[A-Z]\.\s*(?=[A-Z])")
_EXPLAINS = frozenset(("because", "since", "as", "the", "it", "this", "that", "based", "according", "i", "in", "if"))
"""First words of an explanation; names begin otherwise."""


def leading_label(
    text: str, forms: Mapping[str, str], named: Callable[[str], object | None], texts: Mapping[str, str]
) -> tuple[str, Literal["letter", "prefix"]] | None:
    """Label at the start of an answer, followed by a delimiter; None without one, or if it is ambiguous.

    Args:
        text: the answer.
        forms: label by folded spelling.
        named: what a clause of the answer names: a label, or anything else where it fits several; None for nothing.
        texts: the text of each label's choice, where there are choices.
    """
    if not forms:
        return None
    longest = max(map(len, forms))
    lead = text[: len(text) - len(text.lstrip(_OPENING))]
    if len(lead) > _LONGEST_LEAD:
        return None
    for bare in dict.fromkeys((text.lstrip(), text[len(lead) :])):
        # Folding shortens a text at most to a third of its length, without blanks: that much of it decides.
        cut = bare[: 8 * longest + 512]
        start = _folded_start(cut)
        fitting = {form: rest for form in forms if (rest := _after(form, start)) is not None}
        if not fitting:
            continue
        form = max(fitting, key=len)
        label, rest = forms[form], fitting[form]
        letter = len(form) == 1 and form.isascii() and form.isalnum()
        if (
            _goes_on_with_another(rest, label, forms)
            or _may_become_another(form, start, forms)
            or any(named(clause) not in (None, label) for clause in _clauses(rest, bare[len(cut) :][-_TAIL:]))
            or (letter and _may_be_initial(cut, texts.get(label)))
        ):
            return None
        return label, "letter" if letter else "prefix"
    return None


def with_own_text(text: str, texts: Mapping[str, str]) -> tuple[str, Literal["letter", "prefix"]] | None:
    """Label that stands in front of the whole text of its own choice, as in `B. 12` or `A) -1`; None without one."""
    plain = nfkc(text).lstrip(_OPENING)
    for label, choice in texts.items():
        if choice and plain[: len(label)].casefold() == label.casefold():
            if (separator := _SEPARATOR.match(plain, len(label))) is None:
                continue
            said = plain[separator.end() :]
            if said and typed(said) == typed(choice) and (separator[0].strip() or said not in texts):
                return label, "letter" if len(label) == 1 else "prefix"
    return None


_SEPARATOR = re.compile(r"[)\]}*_`\"']*\s*(?:[.:,=(](?!\d)|[.:,=(]\s+|[-\u2013\u2014]\s+)?[\s*_`\"']*(?<=\W)")


def _clauses(rest: str, tail: str) -> Iterator[str]:
    """Clauses of an answer behind its label, each also without its first joining words."""
    last = _CLAUSE_END.split(tail)[-2:] if tail else []
    for clause in (*_CLAUSE_END.split(rest, maxsplit=_MOST_CLAUSES)[:_MOST_CLAUSES], *last):
        clause = clause.strip()
        if clause:
            yield clause
            if joined := _JOINERS.match(clause.casefold()):
                yield clause[joined.end() :]


def _may_be_initial(text: str, choice: str | None) -> bool:
    """Whether a letter, a full stop and a capital may begin a name: with choices any but the text of its own does."""
    initial = _INITIAL.match(nfkc(text))
    if initial is None:
        return False
    rest = nfkc(text)[initial.end() :]
    if choice is None:
        return _INITIAL.match(rest) is not None
    own, said = fold(choice), fold(rest)
    return not (said.startswith(own) or own.startswith(said) or said.split(" ")[0] in _EXPLAINS)


def _folded_start(text: str) -> str:
    """Folded start of a text, with its marks; a line break between sentences is kept."""
    plain = _NEW_LINE.sub(lambda found: " " if found[1].islower() else _LINE, nfkc(text))
    return _LINE.join(" ".join(line.split()) for line in plain.casefold().translate(TYPOGRAPHY).split(_LINE))


def _after(form: str, text: str) -> str | None:
    """Rest of a text after a label's spelling and the delimiter; None without a delimiter."""
    if not text.startswith(form):
        return None
    rest = text[len(form) :]
    bare = rest.lstrip(_CLOSING)
    if any(mark in _BRACKETS for mark in rest[: len(rest) - len(bare)]):
        return _AFTER_BRACKET.sub("", bare)
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
        or (spaced != bare and _OPINION.match(spaced) is not None)
        or (mark in _BEFORE_ANYTHING_BUT_DIGITS and not then.isdigit())
        or (mark in _BEFORE_A_BLANK and (not then or then in " \n" or not then.isascii()))
    )
    return spaced.removeprefix(mark if not mark.isalnum() else "").lstrip() if ends else None


def _goes_on_with_another(rest: str, label: str, forms: Mapping[str, str]) -> bool:
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


def _may_become_another(form: str, text: str, forms: Mapping[str, str]) -> bool:
    """Whether the text also follows, for a word beyond the delimiter, a longer spelling of another label."""
    for longer, other in forms.items():
        if other == forms[form] or len(longer) <= len(form) or not longer.startswith(form):
            continue
        mark_and_word = re.match(r"\W*\w+", longer[len(form) :])
        if mark_and_word and not mark_and_word[0][0].isalnum() and text[len(form) :].startswith(mark_and_word[0]):
            return True
    return False
