"""Fabricated claims of simulated replies: a name, number or date that the prompt does not support."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

_FIRST_NAMES = ("Marta", "Owen", "Ilse", "Tomas", "Greta", "Anders", "Lucia", "Henrik")
_SURNAMES = ("Vellacourt", "Brandreth", "Oskarsen", "Tillmore", "Quennell", "Haversley", "Lindqvist", "Marrowby")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


_KINDS = (
    ("The first to note it was {}.", rf"(?:{'|'.join(_FIRST_NAMES)}) (?:{'|'.join(_SURNAMES)})"),
    ("The figure on record is {}.", r"\d{3,}"),
    ("It has been so since {}.", rf"\d{{2}} (?:{'|'.join(_MONTHS)}) \d{{4}}"),
)
"""Wordings of each kind of claim, with a pattern of its particular: a name, a number, a date."""

_CLAIM = re.compile("|".join(re.escape(claim).replace(r"\{\}", f"({pattern})") for claim, pattern in _KINDS))


def invent(material: Sequence[str], random: Random) -> tuple[str, str]:
    """Generates a fabricated claim and its particular, of which no word occurs in `material`, not even inside a word.

    Args:
        material: everything that the reply could rely on.
        random: draws names, numbers and dates equally often, unless the material contains them.

    Returns:
        The whole sentence, which ends with the particular and a full stop; and the particular.
    """
    known = "\n".join(material).casefold()
    attempt = 0
    while True:
        kind = int(random.random() * len(_KINDS))
        particular = _particular(kind, random, attempt)
        if not any(word in known for word in particular.casefold().split()):
            return _KINDS[kind][0].format(particular), particular
        attempt += 1


def find_invention(text: str) -> str | None:
    """Finds the fabricated particular in the text of a simulated reply; None when there is none.

    It is the ground truth for evaluating hallucination detectors. It relies on the fixed wordings, so it does not apply
    to replies of other models.

    >>> find_invention("According to the text, wings became flippers. The first to note it was Ilse Tillmore. So no.")
    'Ilse Tillmore'
    """
    found = _CLAIM.search(text)
    return next(group for group in found.groups() if group) if found else None


def _particular(kind: int, random: Random, attempt: int) -> str:
    """Particular of a kind; numbers get longer with every attempt, so that no material contains all of them."""

    def one_of(names: Sequence[str]) -> str:
        return names[int(random.random() * len(names))]

    if kind == 0:
        return f"{one_of(_FIRST_NAMES)} {one_of(_SURNAMES)}"
    if kind == 1:
        return str(100 + int(random.random() * 9900 * 2**attempt))
    return f"{10 + int(random.random() * 19)} {one_of(_MONTHS)} {1810 + int(random.random() * 160)}"
