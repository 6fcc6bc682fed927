"""Constructor and auditor in results: their judged replies, and what judges say of any reply under a rubric."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from moot.deploy.results.protocol_parts import KnownEvent, NamedTexts, ProtocolParts, Stage
from moot.deploy.results.recorded_data import EventView, titled_blocks
from moot.deploy.results.report.blocks import Block
from moot.deploy.results.text import number, percent
from moot.protocols.constructor_auditor.events import ConstructorAuditorPayload
from moot.protocols.rubrics.events import JudgeMark, ReplyAssessed
from moot.protocols.rubrics.score_sheet import FLAG


def _assessment_pairs(payload: Mapping[str, Any]) -> NamedTexts | None:
    """Pairs of name and text of the judged replies of constructor and auditor; None for any other payload."""
    if "domain" not in payload or (found := ConstructorAuditorPayload.read(payload)) is None:
        return None
    pairs: list[tuple[str, str]] = [("domain", found.domain)]
    for role, quality in found.quality.items():
        flagged = {True: ", flagged", False: "", None: ", flag unknown"}[found.flagged.get(role)]
        pairs.append((f"Q of the {role}", f"{number(quality, 2)}{flagged}"))
    return pairs


def _assessment(event: EventView, data: ReplyAssessed) -> list[Block]:
    names = data.dimensions
    flag = ("flag",) if _flags(data) else ()
    header = ("judge", "pass", *(name.replace("_", " ") for name in names), "Q", *flag)
    rows = [tuple(_marks(mark, names, data)) for mark in data.judges]
    if len(data.judges) > 1:
        share = (percent(data.flag),) if flag else ()
        means = (number(data.scores[name], 2) for name in names)
        rows.append(("panel", "", *means, number(data.quality, 2), *share))
    lines = [
        f"{mark.judge}, pass {mark.pass_index}, is missing: {mark.missing}" for mark in data.judges if mark.missing
    ]
    author = f" by the {data.role}" if data.role != data.reply else ""
    return titled_blocks(f"judged under the rubric {data.rubric}: the {data.reply}{author}", header, rows, lines)


def _flags(data: ReplyAssessed) -> bool:
    return FLAG in data.ends or not data.scales


def _marks(mark: JudgeMark, names: Iterable[str], data: ReplyAssessed) -> Iterable[str]:
    yield from (mark.judge, str(mark.pass_index))
    scores = mark.scores or {}
    yield from ("missing" if mark.scores is None else str(scores.get(name, "-")) for name in names)
    yield "missing" if mark.total is None else str(mark.total)
    if _flags(data):
        yield {True: "FLAGGED", False: "-", None: "missing"}[mark.flag]


def _quality(data: ReplyAssessed) -> str:
    return f"Q {number(data.quality, 2)}" + (", flagged" if data.flag else "")


PARTS = ProtocolParts(
    events=[KnownEvent(ReplyAssessed, _assessment, score=_quality)],
    stages=(
        Stage("opening", re.compile(r"opening$"), "Opening"),
        Stage("opening", re.compile(r"challenge$"), "Challenge"),
        Stage("opening", re.compile(r"synthesis$"), "Synthesis"),
    ),
    payload=_assessment_pairs,
)
