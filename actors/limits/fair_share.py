"""Max-min fair shares of a bound among those that demand a part of it."""

from __future__ import annotations

from collections.abc import Mapping


def fair_share(bound: int, demands: Mapping[str, int], had: Mapping[str, int]) -> dict[str, int]:
    """Max-min fair shares: whole numbers that add up to at most `bound`.

    No holder gets less than an equal part while another gets more, except that none gets more than its demand. The
    surplus is divided among all with a demand, so that they can grow without a new request. A remainder goes first to
    those that had least, so that with a bound below their number all take turns.

    >>> fair_share(10, {"a": 2, "b": 20, "c": 20}, {})
    {'a': 2, 'b': 4, 'c': 4}
    >>> fair_share(1, {"a": 5, "b": 5}, {"a": 1, "b": 0})
    {'a': 0, 'b': 1}
    """
    given = dict.fromkeys(demands, 0)
    asking = sorted((name for name in demands if demands[name] > 0), key=lambda name: demands[name])
    left = bound
    for place, name in enumerate(asking):
        given[name] = min(demands[name], left // (len(asking) - place))
        left -= given[name]
    for name in sorted(asking, key=lambda name: (given[name], had.get(name, 0))):
        if left and given[name] < demands[name]:
            given[name] += 1
            left -= 1
    for name in asking:
        given[name] += left // (2 * len(asking))
    return given
