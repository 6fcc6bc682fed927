"""Whether an answer is right; used where the record is made, never where a message is."""

from __future__ import annotations

from moot.protocols.labels import fold


def is_correct(answer: str | None, gold: str | None) -> bool | None:
    """Whether a verdict's answer is the gold label; None when that cannot be said. Raises nothing.

    Both are compared as `fold` spells them: labels of one set differ after it, and a free-text answer, which
    arrives folded, meets its gold text. Without a gold label nothing is scored, and a verdict without an
    answer is no wrong answer: such cases are counted apart.

    >>> is_correct("Yes", "Yes"), is_correct("No", "Yes"), is_correct(None, "Yes"), is_correct("Yes", None)
    (True, False, None, None)
    """
    return None if answer is None or gold is None else fold(answer) == fold(gold)
