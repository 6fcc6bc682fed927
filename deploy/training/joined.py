"""Which summaries belong together: those of one claim in any spelling, and those of one source, across runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def joined_groups(keys: Sequence[Iterable[str]]) -> list[str]:
    """A name for the group of each row; rows that share a key, themselves or through others, are of one group.

    Args:
        keys: of each row, one at least.

    Returns:
        The least key of all in the group, so that the order of the rows does not matter.

    >>> joined_groups([["a"], ["b", "page"], ["c"], ["a", "page"]])
    ['a', 'a', 'c', 'a']
    """
    root: dict[str, str] = {}

    def found(key: str) -> str:
        while (above := root.setdefault(key, key)) != key:
            root[key] = root[above]
            key = root[key]
        return key

    rows = [list(each) for each in keys]
    for first, *others in rows:
        for other in others:
            one, two = sorted((found(first), found(other)))
            root[two] = one
    return [found(first) for first, *_ in rows]
