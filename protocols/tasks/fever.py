"""FEVER as it is downloaded, and its symmetric set: claims with a verdict, as JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from moot.protocols.claims import HALLUCINATED, SUPPORTED
from moot.protocols.tasks.claim_rows import Claim, claims_task, source_name
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.row import Row, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

_GOLD = {"SUPPORTS": SUPPORTED, "REFUTES": HALLUCINATED}
_LEFT_OUT = "NOT ENOUGH INFO"


def fever_task(source: Source, spec: str) -> Task:
    """A task over FEVER; `open_task("fever:PATH")` is the usual way to it. Raises nothing.

    Claims without enough evidence for a verdict are left out: they are neither supported nor refuted.
    """
    return claims_task(
        partial(jsonl_rows, source),
        _claims,
        name="fever",
        spec=spec,
        path=source.file,
        replayable=source.replayable,
    )


def _claims(row: Row) -> Iterator[Claim]:
    row.require(("claim", "label"))
    label = row.text("label")
    if label not in (*_GOLD, _LEFT_OUT):
        raise row.error("label", f"expected {', '.join(_GOLD)} or {_LEFT_OUT}, found {shown(label)}")
    claim, (passage, group) = row.text("claim"), _evidence(row)
    if label in _GOLD:
        yield Claim(text=claim, gold=_GOLD[label], passage=passage, group=group)


def _evidence(row: Row) -> tuple[str, str]:
    """The evidence's text, empty where the file only points to it, and what names it."""
    value = row.values.get("evidence")
    if isinstance(value, str):
        text = row.text("evidence")
        return text, source_name(text)
    return ("", "") if value is None or value == [] else ("", _first_page(row, value))


def _first_page(row: Row, value: object) -> str:
    """The page of the first pointer in lists of lists of them; empty where it points to none."""
    pointer = value
    for _ in ("sets", "pointers"):
        pointer = pointer[0] if isinstance(pointer, list) and pointer else None
    if not isinstance(pointer, list) or len(pointer) != 4:
        expected = "expected a text, or lists of lists of [annotation, evidence, page, sentence]"
        raise row.error("evidence", f"{expected}, found {shown(value)}")
    return "" if pointer[2] is None else row.checked("evidence", pointer[2])
