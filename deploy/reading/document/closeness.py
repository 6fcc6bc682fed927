"""Whether a panel's verdict could as well have gone the other way."""

from __future__ import annotations

from moot.deploy.reading.document.views import PanelView
from moot.deploy.reading.text import number


def too_close(panel: PanelView) -> str:
    """Why the winner is too close to call; empty where it is not, and for a tie.

    It is where what coming first is worth to a judge is no less than the margin, or where every judge's winner changes
    with the order.
    """
    if panel.winner not in ("A", "B") or panel.totals.A is None or panel.totals.B is None:
        return ""
    margin = abs(panel.totals.A - panel.totals.B)
    worth = max((abs(bias) for bias in panel.position_bias.values() if bias is not None), default=None)
    if worth is not None and worth >= margin:
        than = "more than" if worth > margin else "as much as"
        return f"what coming first is worth ({number(worth)}) is {than} the margin ({number(margin)})"
    return "every judge's winner changes with the order" if _all_change(panel) else ""


def _all_change(panel: PanelView) -> bool:
    """Whether each judge found A better in one order and B in the other."""
    winners: dict[str, set[str | None]] = {}
    for sheet in panel.orders:
        winners.setdefault(sheet.judge, set()).add(sheet.winner)
    return bool(winners) and all(found == {"A", "B"} for found in winners.values())
