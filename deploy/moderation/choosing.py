"""What a person types, read as one of a form's actions and its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from moot.protocols.errors import ConfigError, unknown_name

_NUMBER = re.compile(r"(\d+)(?:\s+(.*))?", re.DOTALL)
_WORD = re.compile(r"\s*(\S+)")
_SHOWN = 40
"""Characters of what was typed that an error repeats."""


class Choice(NamedTuple):
    """An action of a form, and the text that was typed with it (empty: none)."""

    action: str
    text: str


class _Fit(NamedTuple):
    """How well a line begins with an action: all of its words in full, or so many beginnings of words."""

    whole: bool
    words: int
    rest: str


def choose(line: str, actions: Sequence[str]) -> Choice:
    """The action that a line begins with, by its number or by the beginnings of its words; the rest is the text.

    >>> choose("set 0.3", ("go on", "set kappa", "end"))
    Choice(action='set kappa', text='0.3')
    >>> choose("2 0.3", ("go on", "set kappa", "end"))
    Choice(action='set kappa', text='0.3')

    Raises:
        ConfigError: it begins with none of them, or with several alike.
    """
    line = line.strip()
    numbered = _NUMBER.fullmatch(line)
    if numbered:
        number = int(numbered[1])
        if not 1 <= number <= len(actions):
            raise ConfigError(f"there is no action {numbered[1][:_SHOWN]}: expected a number from 1 to {len(actions)}")
        return Choice(actions[number - 1], (numbered[2] or "").strip())
    fits = {action: fit for action in actions if (fit := _fit(line, action)) is not None}
    if not fits:
        raise unknown_name("action", line[:_SHOWN], actions)
    best = max((fit.whole, fit.words) for fit in fits.values())
    found = [action for action, fit in fits.items() if (fit.whole, fit.words) == best]
    if len(found) > 1:
        raise ConfigError(f"{line[:_SHOWN]!r} may be any of {', '.join(found)}: type more of it, or a number")
    return Choice(found[0], fits[found[0]].rest)


def _fit(line: str, action: str) -> _Fit | None:
    """How a line begins with an action; None when it does not."""
    place, matched, whole = 0, 0, True
    words = action.casefold().split()
    for word in words:
        typed = _WORD.match(line, place)
        if typed is None or not word.startswith(typed[1].casefold()):
            break
        whole = whole and typed[1].casefold() == word
        place, matched = typed.end(), matched + 1
    if not matched:
        return None
    return _Fit(whole and matched == len(words), matched, line[place:].strip())
