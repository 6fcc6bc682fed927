"""Shows what the debates of each cell were like, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from moot.deploy.ablation.debates import MEASURES, DebateMean, MeanAgainst
from moot.deploy.ablation.effects import CellFigures
from moot.deploy.reading.blocks import Block
from moot.deploy.reading.text import Interval, count, p_value

_HEADER = ("mean [95 %]", "n", "change [95 %]", "p", "p, BH", "pairs")


def debate_blocks(cells: Sequence[CellFigures], keys: tuple[str, ...], baseline: str) -> list[Block]:
    """A table for each measure that the rounds of any cell hold; cells that another one's run serves are left out."""
    own = [each for each in cells if each.same_as is None]
    held = [key for key in MEASURES if any(key in each.debates for each in own)]
    return [
        Block(
            f"{MEASURES[key]}: mean (BCa), change from {baseline} by case (Wilcoxon's p; BH over all tables)",
            (*keys, *_HEADER),
            [(*each.values.values(), *_row(each.debates.get(key))) for each in own],
        )
        for key in held
    ]


def _row(found: DebateMean | None) -> tuple[str, ...]:
    if found is None:
        return ("unknown", "0", *_change(None))
    return (_with_ends(f"{found.mean:.3g}", found.interval, ".3g"), count(found.n), *_change(found.vs_baseline))


def _change(found: MeanAgainst | None) -> tuple[str, ...]:
    if found is None:
        return ("-", "-", "-", "-")
    change = _with_ends(f"{found.difference:+.3g}", found.interval, "+.3g")
    return (change, p_value(found.p_value), p_value(found.p_adjusted), count(found.n))


def _with_ends(mean: str, interval: Interval | None, form: str) -> str:
    return f"{mean} [{interval[0]:{form}}, {interval[1]:{form}}]" if interval else mean
