"""Wording of a sentence: content words, negation, and quantities with their units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from moot.protocols.ceda.quantities import MONTHS, NUMBER, NUMERALS, SCALES, TOKEN, QuantityRange, marked, quantities_of
from moot.protocols.text.unicode_form import nfkc

_VERBS = """
begin began begun/break broke broken/bring brought/build built/buy bought/catch caught/choose chose chosen/come came/
draw drew drawn/drink drank drunk/drive drove driven/eat ate eaten/fall fell fallen/fly flew flown/freeze froze frozen/
give gave given/go went gone/grow grew grown/hold held/keep kept/know knew known/lead led/lose lost/make made/meet met/
pay paid/ride rode ridden/rise rose risen/run ran/sell sold/send sent/sing sang sung/sink sank sunk/sleep slept/
speak spoke spoken/spend spent/steal stole stolen/swim swam swum/take took taken/teach taught/throw threw thrown/
win won/write wrote written
"""

IRREGULAR: Mapping[str, str] = {
    form: verb for verb, *forms in (verbs.split() for verbs in _VERBS.split("/")) for form in forms
}
"""Infinitive by inflected form."""


_PAIRS = """
above/below accept/reject agree/disagree alive/dead allow/ban allow/forbid approve/reject begin/end
big/small black/white born/died boy/girl buy/sell cold/hot cool/warm dark/light dangerous/safe dangerous/harmless
decline/grow decrease/increase different/identical different/same down/up early/late earlier/later earliest/latest
east/west eastern/western empty/full enemy/friend equal/unequal export/import fail/succeed failure/success fall/rise
false/true fell/rose few/many fewer/more first/last fewest/most forward/backward gain/lose grew/shrank grow/shrink
guilty/innocent harmful/harmless heavy/light high/low higher/lower highest/lowest husband/wife illegal/legal
impossible/possible include/exclude inside/outside large/small larger/smaller largest/smallest least/most left/right
less/more long/short longer/shorter longest/shortest lose/win lost/won loss/profit man/woman male/female
maximum/minimum men/women natural/artificial new/old north/south northern/southern open/close older/younger
oldest/youngest present/absent private/public poor/rich safe/unsafe slow/fast slower/faster start/finish start/stop
strong/weak stronger/weaker tall/short unable/able unknown/known young/old
"""


def antonym_pairs() -> tuple[tuple[str, str], ...]:
    """The antonym pairs.

    >>> ("left", "right") in antonym_pairs()
    True
    """
    pairs = (pair.partition("/") for pair in _PAIRS.split())
    return tuple((one, other) for one, _, other in pairs)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS = _words(
    "not no never none neither nor without cannot nothing nobody nowhere hardly scarcely barely rarely seldom"
)
_NO_NEGATION = re.compile(
    r"\bnot (?:only|just|merely)\b|\b(?:no|without (?:any |a )?) ?(?:doubt|wonder)\b|\bno\. ?(?=\d)", re.IGNORECASE
)
_ATTRIBUTION = re.compile(
    r"\b(?:says?|said|states?|stated|claims?|claimed|reports?|reported|announce[sd]?|adds|added|writes?|wrote|holds|held)"
    r" that\b|\baccording to\b",
    re.IGNORECASE,
)
"""Attributions are removed: contradictory sources have different names."""

_NUMBERED = re.compile(r"(?<![\w-])(No\.|[A-Z][\w-]*) (\d{1,4}|[IVX]{2,}|[VX])\b(?![.,]\d| ?%)")
_STOP = _words(
    "a an the and or but if as at by for from in into of on onto to with about between than then that this these those "
    "there here it its he she his her they their them we our you your i my me who whom whose which what when where why "
    "how is are was were be been being am do does did done has have had having will would can could may might shall "
    "should must also only just very so such ever both each every any some all other another while because during over "
    "under through question answer yes one ones per cent percent s t"
)
_AROUND_NUMBERS = _words(
    "since until till before after early late up below above less more fewer greater around roughly approximately "
    "circa nearly almost close"
)
_SUFFIXES = ("ing", "ed", "es", "s")


def stem(word: str) -> str:
    """A word without its commonest endings, for comparing; not always a word. Irregular verbs are their infinitives.

    >>> stem("opened"), stem("closes"), stem("close"), stem("glass"), stem("built")
    ('open', 'clos', 'clos', 'glass', 'build')
    """
    word = IRREGULAR.get(word, word)
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
"""Stems of contradictory words, by stem."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Features of a sentence for the tests.

    Attributes:
        words: stems of its content words, numbers apart.
        negation: its first negating word; empty if it has none.
        quantities: by unit (see `quantities`) the possible numbers.
        numbered: by a name's stem, the numbers that are part of the name: 11 of "Apollo 11".
        spelled: by stem, a content word in its original spelling.
    """

    words: frozenset[str]
    negation: str
    quantities: Mapping[str, frozenset[QuantityRange]]
    numbered: Mapping[str, frozenset[str]]
    spelled: Mapping[str, str]

    @property
    def negated(self) -> bool:
        """Whether the sentence is negated."""
        return bool(self.negation)


def wording_of(sentence: str) -> Wording:
    """Wording of a sentence.

    >>> read = wording_of("The tower isn't 1,063 feet high.")
    >>> sorted(read.words), read.negation, {unit: str(*found) for unit, found in read.quantities.items()}
    (['feet', 'high', 'tower'], "isn't", {'feet': '1063'})
    """
    text = nfkc(sentence).replace("\u2019", "'")
    numbered: dict[str, frozenset[str]] = {}
    for name, number in _NUMBERED.findall(text):
        if _names_a_thing(name):
            numbered[stem(name.casefold())] = numbered.get(stem(name.casefold()), frozenset()) | {number}
    text = _NUMBERED.sub(lambda found: found[1].removeprefix("No.") if _names_a_thing(found[1]) else found[0], text)
    tokens = TOKEN.findall(marked(_ATTRIBUTION.sub(" ", _NO_NEGATION.sub(" ", text)).casefold()))
    negation = next((token for token in tokens if token in _NEGATIONS or token.endswith("n't")), "")
    spelled = {stem(token.removesuffix("'s")): token for token in tokens if _is_content(token)}
    quantities = quantities_of(tokens, [_as_unit(token) for token in tokens])
    return Wording(frozenset(spelled), negation, quantities, numbered, spelled)


def _names_a_thing(word: str) -> bool:
    """Whether a capitalised word before a number is a name, not the start of a sentence or of a date."""
    plain = word.casefold()
    return not (plain in MONTHS or plain in _STOP or plain in _NEGATIONS or plain in _AROUND_NUMBERS)


def _is_content(token: str) -> bool:
    is_number = token in NUMERALS or token in SCALES or NUMBER.fullmatch(token) is not None
    is_function = token in _NEGATIONS or token.endswith("n't") or token in _STOP
    return token[0].isalnum() and not is_number and not is_function


def _as_unit(token: str) -> str:
    """Unit named by a word after a number; a verb such as "landed" is not one."""
    return stem(token) if _is_content(token) and token not in MONTHS and not token.endswith("ed") else ""
