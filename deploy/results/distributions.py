"""Formatting of distributions over labels: the most probable labels, and the sum of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moot.deploy.results.text import number
from moot.protocols.distribution import OTHER

_SHOWN = 8

Distribution = Mapping[str, float | None]
"""Probability by label; None is unknown."""


def distribution_rows(
    distributions: Sequence[Distribution], shown: int = _SHOWN
) -> list[tuple[str, list[float | None]]]:
    """Rows of labels with their probability in each distribution, in falling order; then further labels, then `OTHER`.

    Labels without mass in any distribution have no row. A label missing from a distribution has probability 0 in it.

    Args:
        distributions: the distributions.
        shown: number of labels with a row of their own.

    >>> distribution_rows([{"a": 0.5, "b": 0.25, "c": 0.15, "(other)": 0.1}], shown=1)
    [('a', [0.5]), ('(2 further labels)', [0.4]), ('(other)', [0.1])]
    """
    most: dict[str, float] = {}
    for distribution in distributions:
        for label, p in distribution.items():
            most[label] = max(most.get(label, 0.0), 1.0 if p is None else p)
    named = sorted((label for label, p in most.items() if label != OTHER and p > 0.0), key=lambda label: -most[label])
    if len(named) == shown + 1:
        shown += 1
    rows = [(label, [d.get(label, 0.0) for d in distributions]) for label in named[:shown]]
    if further := named[shown:]:
        rows.append((f"({len(further)} further labels)", [_sum(d, further) for d in distributions]))
    if OTHER in most:
        rows.append((OTHER, [d.get(OTHER, 0.0) for d in distributions]))
    return rows


def _sum(distribution: Distribution, labels: Sequence[str]) -> float | None:
    found = [distribution.get(label, 0.0) for label in labels]
    known = [p for p in found if p is not None]
    return sum(known) if len(known) == len(found) else None


def distribution_line(distribution: Distribution) -> str:
    """Text of a distribution, one line.

    >>> distribution_line({"No": 0.25, "Yes": 0.75})
    'Yes 0.75, No 0.25'
    """
    return ", ".join(f"{label} {number(p)}" for label, (p,) in distribution_rows([distribution])) or "-"
