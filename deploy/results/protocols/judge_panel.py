"""The judge panel in results: the marks on one reply, which are the whole verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.deploy.results.protocol_parts import NamedTexts, ProtocolParts
from moot.deploy.results.text import number, percent
from moot.protocols.judge_panel.payload import PanelPayload


def panel_pairs(payload: Mapping[str, Any]) -> NamedTexts | None:
    """Pairs of name and text of a judge panel's result on one reply; None for any other payload."""
    if (panel := PanelPayload.read(payload)) is None:
        return None
    missing = ", ".join(f"{kind} {n}" for kind, n in panel.abstentions.items())
    share = "" if panel.flag is None else f", by {percent(panel.flag)} of the marks"
    pairs = [
        ("rubric", panel.rubric),
        ("Q (quality, mean)", number(panel.quality, 2)),
        ("flagged", _FLAGGED[panel.flagged] + share),
    ]
    for name, marks in panel.dimensions.items():
        spread = "unknown" if marks.spread is None else str(marks.spread)
        words = f"mean {number(marks.mean, 2)}, median {number(marks.median, 2)}, highest less lowest {spread}"
        pairs.append((name.replace("_", " "), words))
    absent = f", and {panel.missing} missing" if panel.missing else ""
    return [*pairs, ("marks", f"{panel.judgments}{absent}{f' ({missing})' if missing else ''}")]


_FLAGGED = {True: "yes", False: "no", None: "unknown"}

PARTS = ProtocolParts(payload=panel_pairs, verdict=panel_pairs)
