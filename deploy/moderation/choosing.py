"""What a person types, read as one of a form's actions and its text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from moot.protocols.errors import ConfigError, unknown_name

_SHOWN = 40
"""Characters of what was typed that an error repeats."""


class Choice(NamedTuple):
    """An action of a form, and the text that was typed with it (empty: none)."""

    action: str
    text: str


def choose(line: str, actions: Sequence[str]) -> Choice:
    """The action that a line begins with, by its number or by the beginnings of its words; the rest is the text.

    >>> choose("set 0.3", ("go on", "set kappa", "end"))
    Choice(action='set kappa', text='0.3')
    >>> choose("2 0.3", ("go on", "set kappa", "end"))
    Choice(action='set kappa', text='0.3')

    Raises:
        ConfigError: it begins with none of them, or with several alike.
    """
    first = line.split(maxsplit=1)[:1]
    if first and first[0].isdecimal():
        number = int(first[0])
        if not 1 <= number <= len(actions):
            raise ConfigError(f"there is no action {number}: expected a number from 1 to {len(actions)}")
        return Choice(actions[number - 1], _after(line, 1))
    fits = {action: fit for action in actions if (fit := _fit(line, action))[1]}
    if not fits:
        raise unknown_name("action", line.strip()[:_SHOWN], actions)
    best = max(fits.values())
    found = [action for action, fit in fits.items() if fit == best]
    if len(found) > 1:
        raise ConfigError(f"{line.strip()[:_SHOWN]!r} may be any of {', '.join(found)}: type more of it, or a number")
    return Choice(found[0], _after(line, best[1]))


def _fit(line: str, action: str) -> tuple[bool, int]:
    """Whether a line begins with all words of an action in full, and how many it begins with."""
    words = action.casefold().split()
    pairs = list(zip(line.casefold().split(), words, strict=False))
    begun = list(takewhile(lambda pair: pair[1].startswith(pair[0]), pairs))
    return len(begun) == len(words) and all(typed == word for typed, word in begun), len(begun)


def _after(line: str, words: int) -> str:
    """What follows so many words."""
    return "".join(line.split(maxsplit=words)[words:]).strip()
