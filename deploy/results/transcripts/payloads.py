"""Pairs of name and text of a verdict's payload: formatted for known protocols, else as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.deploy.results.text import number, percent
from moot.deploy.results.transcripts.ceda import check_pairs
from moot.deploy.results.transcripts.evince import consensus_pairs
from moot.deploy.results.transcripts.generic_blocks import plain_pairs
from moot.deploy.results.transcripts.selene import gate_pairs
from moot.protocols.constructor_auditor.events import ConstructorAuditorPayload
from moot.protocols.judge_panel.payload import PanelPayload
from moot.protocols.verdict_sources import VerdictSources

_YES = {True: "yes", False: "no", None: "unknown"}


def payload_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs of name and text of a payload, without the sources of the verdict's figures."""
    for pairs_of in (consensus_pairs, check_pairs, gate_pairs, panel_pairs, _assessment_pairs):
        if (pairs := pairs_of(payload)) is not None:
            return pairs
    return list(plain_pairs({key: v for key, v in payload.items() if key not in VerdictSources.model_fields}))


def panel_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Pairs of name and text of a judge panel's result on one reply; None for any other payload."""
    if (panel := PanelPayload.read(payload)) is None:
        return None
    missing = ", ".join(f"{kind} {n}" for kind, n in panel.abstentions.items())
    pairs = [
        ("rubric", panel.rubric),
        ("Q (quality, mean)", number(panel.quality, 2)),
        ("flagged", _YES[panel.flagged] + ("" if panel.flag is None else f", by {percent(panel.flag)} of the marks")),
    ]
    for name, marks in panel.dimensions.items():
        spread = "unknown" if marks.spread is None else str(marks.spread)
        words = f"mean {number(marks.mean, 2)}, median {number(marks.median, 2)}, highest less lowest {spread}"
        pairs.append((name.replace("_", " "), words))
    absent = f", and {panel.missing} missing" if panel.missing else ""
    return [*pairs, ("marks", f"{panel.judgments}{absent}{f' ({missing})' if missing else ''}")]


def _assessment_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Pairs of name and text of the judged replies of constructor and auditor; None for any other payload."""
    if "domain" not in payload or (found := ConstructorAuditorPayload.read(payload)) is None:
        return None
    pairs: list[tuple[str, str]] = [("domain", found.domain)]
    for role, quality in found.quality.items():
        flagged = {True: ", flagged", False: "", None: ", flag unknown"}[found.flagged.get(role)]
        pairs.append((f"Q of the {role}", f"{number(quality, 2)}{flagged}"))
    return pairs
