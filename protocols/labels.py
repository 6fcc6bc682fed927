"""The one label canonicaliser: from what a model or a file wrote to a label of the closed set."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_YES_NO = {"yes": ("yes", "true", "y", "correct"), "no": ("no", "false", "n", "incorrect")}
_EDGE = " \t\r\n\"'`*_.,:;!?()[]{}<>\u2018\u2019\u201c\u201d\u00ab\u00bb"
# after the letter: a bracket, or a mark that ends there; not "A.I.", "1.5", "3:1" or "A-level"
_LETTERED = re.compile(r"^(?:option|choice|answer)?\s*\(?([a-z0-9])\s*(?:\)|[.:\-\u2013\u2014](?=\s|$)|$)")


def fold(text: str) -> str:
    """Text as labels are compared: NFKC, no surrounding quotes or marks, lower case, single spaces.

    The point of a decimal number is no surrounding mark, even in front.

    >>> fold('  "Yes." '), fold("(.5)")
    ('yes', '.5')
    """
    plain = unicodedata.normalize("NFKC", text)
    bare = plain.strip(_EDGE)
    if bare[:1].isdigit() and _ends_in_point(plain[: len(plain) - len(plain.lstrip(_EDGE))]):
        bare = f".{bare}"
    return " ".join(bare.casefold().split())


def _ends_in_point(edge: str) -> bool:
    """Whether an edge ends in one point: more of them are no decimal point."""
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
    """Every folded spelling that means a label, with that label.

    Where one spelling would mean several labels, a label's own name goes before aliases, those before the texts of
    choices, and those before yes/true and no/false, which only sets of at most three labels have.

    >>> surface_forms(("Yes", "No"))["true"]
    'Yes'
    """
    return dict(_surface_forms(labels, choices, aliases))


def canonical_label(
    text: str, labels: tuple[str, ...], choices: tuple[str, ...] = (), aliases: tuple[tuple[str, ...], ...] = ()
) -> str | None:
    """The label that `text` names, or None when it names none of the set.

    Accepts the label itself, its aliases (those given, in the labels' order, and yes/true ...), a lettered form
    such as `B) ...`, and the whole text of a choice. It never searches inside a sentence: "not B" is no answer.

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
    plain = unicodedata.normalize("NFKC", text).strip("\"'`*_ \t\r\n\u2018\u2019\u201c\u201d")
    lettered = _LETTERED.match(plain.casefold())
    return forms.get(lettered.group(1)) if lettered else None
