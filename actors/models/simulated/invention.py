"""Claims that a simulated reply makes up: a name, number or date that nothing it has read supports."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

_FIRST_NAMES = ("Marta", "Owen", "Ilse", "Tomas", "Greta", "Anders", "Lucia", "Henrik")
_SURNAMES = ("Vellacourt", "Brandreth", "Oskarsen", "Tillmore", "Quennell", "Haversley", "Lindqvist", "Marrowby")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class Invention:
    """A made-up claim.

    Attributes:
        claim: the whole sentence, which ends with the particular and a full stop.
        particular: the name, number or date that is made up.
    """

    claim: str
    particular: str


def invent(material: Sequence[str], random: Random) -> Invention:
    """A claim with a particular of which no word stands in `material`, not even inside another word.

    Args:
        material: everything that the reply could rely on.
        random: names, numbers and dates are drawn equally often, but for those that the material has.
    """
    known = "\n".join(material).casefold()
    attempt = 0
    while True:
        kind = _KINDS[int(random.random() * len(_KINDS))]
        particular = kind.draw(random, attempt)
        if not any(word in known for word in particular.casefold().split()):
            return Invention(kind.claim.format(particular), particular)
        attempt += 1


def find_invention(text: str) -> str | None:
    """The made-up particular in the text of a simulated reply; None when there is none.

    What is found is the truth that a detector of hallucinations is measured against. It goes by the fixed words of the
    claims, so it knows nothing of the replies of any other model.

    >>> find_invention("According to the text, wings became flippers. The first to note it was Ilse Tillmore. So no.")
    'Ilse Tillmore'
    """
    found = _CLAIM.search(text)
    return next(group for group in found.groups() if group) if found else None


def _name(random: Random, attempt: int) -> str:
    first, last = int(random.random() * len(_FIRST_NAMES)), int(random.random() * len(_SURNAMES))
    return f"{_FIRST_NAMES[first]} {_SURNAMES[last]}"


def _number(random: Random, attempt: int) -> str:
    """At least three digits; more of them with every attempt, so that no material has them all."""
    return str(100 + int(random.random() * 9900 * 2**attempt))


def _date(random: Random, attempt: int) -> str:
    day, month, year = (int(random.random() * size) for size in (19, len(_MONTHS), 160))
    return f"{10 + day} {_MONTHS[month]} {1810 + year}"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of claim: its words, what its particular looks like, and how that is drawn in the n-th attempt."""

    claim: str
    pattern: str
    draw: Callable[[Random, int], str]


_KINDS = (
    _Kind("The first to note it was {}.", rf"(?:{'|'.join(_FIRST_NAMES)}) (?:{'|'.join(_SURNAMES)})", _name),
    _Kind("The figure on record is {}.", r"\d{3,}", _number),
    _Kind("It has been so since {}.", rf"\d{{2}} (?:{'|'.join(_MONTHS)}) \d{{4}}", _date),
)
_CLAIM = re.compile("|".join(re.escape(kind.claim).replace(r"\{\}", f"({kind.pattern})") for kind in _KINDS))
