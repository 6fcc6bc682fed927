"""Transcripts inside a report: all of a small run's, a sample of a large one's."""

from __future__ import annotations

import gzip
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any

import msgspec

from moot.deploy.results.run_report.cases import CaseColumn
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.run_report.debate_page import debate_page
from moot.deploy.results.run_report.sent_replies import SentReplies
from moot.deploy.results.text import shell_path
from moot.deploy.results.transcripts.debate_tables import DebateTables
from moot.deploy.results.transcripts.transcript import build_transcripts

TRANSCRIPT_BYTES = 5_000_000
"""Most bytes of the transcripts in one page."""

_STRETCHES, _NEIGHBOURS = 8, 400
_FAILED = 40
"""Transcripts of a large run: number of stretches, cases of each, and failed cases from elsewhere."""

_LEVEL = 6
"""Level of the compression: the highest takes three times as long, and saves a hundredth."""

_FIRST = 100
"""Transcripts packed first; their size determines how many more fit."""


def transcripts_data(run: RunData, columns: Sequence[CaseColumn], size: int = TRANSCRIPT_BYTES) -> dict[str, Any]:
    """Transcripts by case as JSON values, as many as fit into `size` bytes, and the command that shows all."""
    values = {column.name: column.values for column in columns}
    wanted = sample_order([str(case_id) for case_id in values["case"]], [str(each) for each in values["outcome"]])
    tables = DebateTables(run.folder, wanted, with_requests=True)
    packed = _packed(tables, wanted[:_FIRST])
    used = sum(map(len, packed.values()))
    if used and len(wanted) > _FIRST:
        packed |= _packed(tables, wanted[_FIRST : int(len(packed) * size / used)])
    kept = dict(_fitting(packed, size))
    return {"run": run.info.name, "packed": kept, "command": f"moot view {shell_path(run.info.name)}"}


def several_transcripts(runs: Sequence[RunData], columns: Sequence[CaseColumn]) -> dict[str, Any]:
    """Transcripts of the same cases in several runs, those of the others under `others`; they share the room."""
    first, *others = (transcripts_data(run, columns, TRANSCRIPT_BYTES // len(runs)) for run in runs)
    return {**first, "others": others}


def sample_order(case_ids: Sequence[str], outcomes: Sequence[str]) -> list[str]:
    """Cases of a sample, failed and wrong ones ahead: of four, one failed and two wrong, as long as there are any.

    A sample of many cases is of some stretches of neighbours, which the record has close together, and of some more
    failed ones. Within each kind the order is that of a checksum of the id: the same in every report.
    """
    kinds: dict[str, list[str]] = {"failed": [], "wrong": [], "other": []}
    stretch = max(1, len(case_ids) // _STRETCHES)
    elsewhere = []
    for place, (case_id, how) in enumerate(zip(case_ids, outcomes, strict=True)):
        if place % stretch < _NEIGHBOURS:
            kinds[how if how in kinds else "other"].append(case_id)
        elif how == "failed":
            elsewhere.append(case_id)
    failed, wrong, other = (sorted(kind, key=_checksum) for kind in kinds.values())
    failed += sorted(elsewhere, key=_checksum)[: max(0, _FAILED - len(failed))]
    turns = zip_longest(failed, wrong[::2], wrong[1::2], other)
    return [case_id for case_id in chain.from_iterable(turns) if case_id is not None]


def _checksum(case_id: str) -> tuple[int, str]:
    return zlib.crc32(case_id.encode()), case_id


def _packed(tables: DebateTables, case_ids: Sequence[str]) -> dict[str, str]:
    """Transcripts of some of the tables' cases, compressed: many texts in them occur several times."""
    sent = SentReplies(tables, case_ids)
    return {debate.case_id: pack(debate_page(debate, sent)) for debate in build_transcripts(tables, case_ids)}


def pack(value: Any) -> str:
    """JSON as gzip in base64, which a page's script unpacks."""
    return b64encode(gzip.compress(msgspec.json.encode(value), _LEVEL, mtime=0)).decode()


def _fitting(packed: dict[str, str], size: int) -> Iterator[tuple[str, str]]:
    for case_id, text in packed.items():
        size -= len(text)
        if size >= 0:
            yield case_id, text
