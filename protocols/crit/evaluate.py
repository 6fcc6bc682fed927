"""CRIT on a floor: all judges read all documents at once; reasons that are claims are then read one level down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from moot.protocols.crit.appraisal import NO_BUDGET, TOO_DEEP, Appraisal, CritDocument, appraise, claims_to_read
from moot.protocols.crit.replies import Reading
from moot.protocols.crit.result import CritResult, JudgeAppraisal, combine, unread
from moot.protocols.crit.settings import CritSettings
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure, Turn

TEMPLATE = "crit/reading"


async def crit(floor: Floor, document: CritDocument, settings: CritSettings, *, path: str) -> CritResult:
    """Score one document by every judge of the panel; see `crit_all`."""
    (result,) = await crit_all(floor, [(path, document)], settings)
    return result


async def crit_all(
    floor: Floor, documents: Sequence[tuple[str, CritDocument]], settings: CritSettings
) -> list[CritResult]:
    """Score every document by every judge of the panel; results in the given order.

    All documents, judges and reasons of one depth are read concurrently: one fan-out per depth. Paths are
    `PATH/judge/J`, and `PATH/judge/J/reason/R` for reason R read as a separate document. Notes one event `crit` at
    each document's path: `events.CritJudged`.

    Args:
        documents: pairs of a path, unique in the debate, and what is read.
    """
    panel = floor.panel("judge")
    roots = [
        [_Reader(f"{path}/{judge}", f"{path}/{judge}", judge, document) for judge in panel if document.text.strip()]
        for path, document in documents
    ]
    level = [reader for readers in roots for reader in readers]
    calls = Counter(reader.root for reader in level)
    while level:
        turns = await floor.ask_all([_request(reader, settings) for reader in level])
        for reader, turn in zip(level, turns, strict=True):
            reader.turn = turn
        level = await _deeper(floor, _within_budget(level, calls, settings))
    results = []
    for (path, _), readers in zip(documents, roots, strict=True):
        heard = {reader.judge: _heard(reader, calls, settings) for reader in readers}
        result = combine(heard, settings) if heard else unread(panel)
        floor.note(result.event(path))
        results.append(result)
    return results


@dataclass(slots=True)
class _Reader:
    """Reading of one document by one judge, at any depth; `root` is the path of its first reading."""

    path: str
    root: str
    judge: str
    document: CritDocument
    depth: int = 0
    source: int | None = None
    turn: Turn[Reading] | Failure | None = None
    below: dict[int, _Reader] = field(default_factory=dict)
    unread: dict[int, str] = field(default_factory=dict)


def _request(reader: _Reader, settings: CritSettings) -> Request[Reading]:
    document = reader.document
    slots = {
        "claim": document.claim,
        "text": document.text,
        "facts": document.facts,
        "opposing": document.opposing,
        "max_reasons": settings.max_reasons,
        "max_rivals": settings.max_rivals,
    }
    return Request(reader.judge, TEMPLATE, slots, Reading, reader.path)


def _within_budget(
    level: Sequence[_Reader], calls: Counter[str], settings: CritSettings
) -> list[tuple[_Reader, int, str]]:
    """Reasons to read deeper, as reader, index and text; the reason for each unread one is kept.

    The most credible come first: they weigh most in the score.
    """
    claims = [
        (reader, place, reader.turn.reply.reasons[place])
        for reader in level
        if isinstance(reader.turn, Turn)
        for place in claims_to_read(reader.document, reader.turn.reply)
    ]
    chosen = []
    for reader, place, reason in sorted(claims, key=lambda claim: -claim[2].credibility):
        if reader.depth >= settings.max_depth:
            reader.unread[place] = TOO_DEEP
        elif calls[reader.root] >= settings.max_calls:
            reader.unread[place] = NO_BUDGET
        else:
            calls[reader.root] += 1
            chosen.append((reader, place, reason.text))
    return chosen


async def _deeper(floor: Floor, chosen: Sequence[tuple[_Reader, int, str]]) -> list[_Reader]:
    """A reader of the nearest source for each chosen reason, or of the same text without sources."""
    looked_up = [(text, reader.document.sources) for reader, _, text in chosen if reader.document.sources]
    if looked_up:
        # All at once, so that the vectors are cached for each search below.
        await floor.embed(list(dict.fromkeys(text for reason, sources in looked_up for text in (reason, *sources))))
    readers = []
    for reader, place, reason in chosen:
        document, source = reader.document, None
        if document.sources:
            (source,) = await floor.retrieve(reason, document.sources, n=1)
            document = replace(document, text=document.sources[source])
        path = f"{reader.path}/reason/{place}"
        below = _Reader(path, reader.root, reader.judge, replace(document, claim=reason), reader.depth + 1, source)
        reader.below[place] = below
        readers.append(below)
    return readers


def _heard(reader: _Reader, calls: Mapping[str, int], settings: CritSettings) -> JudgeAppraisal:
    asked = calls[reader.root]
    if isinstance(reader.turn, Turn):
        return JudgeAppraisal(_appraisal(reader, reader.turn.reply, settings), "", asked, _depth(reader))
    return JudgeAppraisal(None, _why(reader), asked)


def _appraisal(reader: _Reader, reading: Reading, settings: CritSettings) -> Appraisal:
    """Score of the reading, from the deepest readings up; if a deeper one failed, the judge's own mark counts."""
    deeper = {
        place: _appraisal(below, below.turn.reply, settings)
        for place, below in reader.below.items()
        if isinstance(below.turn, Turn)
    }
    failed = {place: _why(below) for place, below in reader.below.items() if place not in deeper}
    return appraise(reader.document, reading, deeper, reader.unread | failed, reader.source, settings.rivals)


def _why(reader: _Reader) -> str:
    assert isinstance(reader.turn, Failure), reader.path
    return f"{reader.turn.kind}: {reader.turn.message}"


def _depth(reader: _Reader) -> int:
    return max([reader.depth, *(_depth(below) for below in reader.below.values())])
