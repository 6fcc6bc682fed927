"""What a sentence is about, as far as its words show it: content words, negation, and quantities with their units."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from moot.protocols.ceda.antonyms import antonym_pairs

_DIGITS = r"\d+(?:,\d{3})*(?:\.\d+)?"
_TOKEN = re.compile(rf"[$€£]?(?<!\w){_DIGITS}(?:\s?%|(?!\w))|\w+(?:'[^\W\d_]+)?")
_NUMBER = re.compile(rf"([$€£]?)({_DIGITS})\s?(%?)")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SMALL = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMERALS = {word: float(number) for number, word in enumerate(_SMALL, start=2)}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_NEGATIONS = _words("not no never none neither nor without cannot nothing nobody nowhere")
_BEFORE_YEAR = _words(
    "in since by from until till after before during of early late january february march april may june july august "
    "september october november december"
)
_STOP = _words(
    "a an the and or but if as at by for from in into of on onto to with about between than then that this these those "
    "there here it its he she his her they their them we our you your i my me who whom whose which what when where why "
    "how is are was were be been being am do does did done has have had having will would can could may might shall "
    "should must also only just very so such both each every any some all other another while because during over "
    "under through question answer yes one ones per cent percent s t"
)
_SUFFIXES = ("ing", "ed", "es", "s")


def stem(word: str) -> str:
    """A word without its commonest endings, for comparing; not always a word.

    >>> stem("opened"), stem("closes"), stem("close"), stem("glass")
    ('open', 'clos', 'clos', 'glass')
    """
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and not word.endswith("ss") and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for one, other in antonym_pairs():
        found.setdefault(stem(one), set()).add(stem(other))
        found.setdefault(stem(other), set()).add(stem(one))
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES: Mapping[str, frozenset[str]] = _opposites()
"""By stem of a word, the stems of those that contradict it."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence as the tests see it.

    Attributes:
        words: stems of its content words, numbers apart.
        negation: its first negating word; empty when it has none.
        quantities: by unit, the numbers; the unit is the stem of the word behind a number, `%`, a currency's mark,
            `year`, or empty.
        spelled: by stem, a content word as it is written.
    """

    words: frozenset[str]
    negation: str
    quantities: Mapping[str, frozenset[float]]
    spelled: Mapping[str, str]

    @property
    def negated(self) -> bool:
        """Whether anything negates it."""
        return bool(self.negation)


def wording_of(sentence: str) -> Wording:
    """What a sentence is about.

    >>> read = wording_of("The tower isn't 1,063 feet high.")
    >>> sorted(read.words), read.negation, dict(read.quantities)
    (['feet', 'high', 'tower'], "isn't", {'feet': frozenset({1063.0})})
    """
    tokens = _TOKEN.findall(unicodedata.normalize("NFKC", sentence).casefold().replace("\u2019", "'"))
    negation = next((token for token in tokens if token in _NEGATIONS or token.endswith("n't")), "")
    spelled = {stem(token.removesuffix("'s")): token for token in tokens if _is_content(token)}
    return Wording(frozenset(spelled), negation, _quantities(tokens), spelled)


def _is_content(token: str) -> bool:
    is_number = token in _NUMERALS or token in _SCALES or _NUMBER.fullmatch(token)
    return not (is_number or token in _NEGATIONS or token.endswith("n't") or token in _STOP)


def _quantities(tokens: list[str]) -> dict[str, frozenset[float]]:
    found: dict[str, set[float]] = {}
    for place, token in enumerate(tokens):
        number = _NUMBER.fullmatch(token)
        if number is None and token not in _NUMERALS:
            continue
        value = _NUMERALS[token] if number is None else float(number[2].replace(",", ""))
        following = tokens[place + 1 :]
        while following and following[0] in _SCALES:
            value *= _SCALES[following.pop(0)]
        mark = "" if number is None else number[1] or number[3]
        found.setdefault(mark or _unit(tokens[:place], token, following), set()).add(value)
    return {unit: frozenset(values) for unit, values in found.items()}


def _unit(before: list[str], token: str, following: list[str]) -> str:
    if re.fullmatch(r"1\d{3}|20\d{2}", token) and before and before[-1] in _BEFORE_YEAR:
        return "year"
    if not following:
        return ""
    if following[0] in ("percent", "per"):
        return "%" if following[0] == "percent" or following[1:2] == ["cent"] else ""
    return stem(following[0]) if _is_content(following[0]) else ""
