"""Claims out of the records of a public file: a row per claim, however many a record makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from moot.protocols.case import Case, Reference
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS, text_hash
from moot.protocols.errors import TaskFileError
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.task import Pictures, Task, no_pictures


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim that a record makes.

    Attributes:
        text: what is claimed.
        gold: one of `CLAIM_LABELS`; None where it is not known.
        id: the case's id; empty for a generated one.
        passage: the evidence that comes with it; may be empty.
        title: a heading for the passage; may be empty.
        documents: texts to retrieve evidence from.
        group, part, tags: see `Reference`.
    """

    text: str
    gold: str | None
    id: str = ""
    passage: str = ""
    title: str = ""
    documents: tuple[str, ...] = ()
    group: str = ""
    part: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


ClaimsOf = Callable[[Row], Iterable[Claim]]
"""From a record to its claims, in order; of none for a record that is left out. Raises TaskFileError."""


def claims_task(
    records: Callable[[], Iterator[Row]],
    claims_of: ClaimsOf,
    *,
    name: str,
    spec: str,
    path: str,
    replayable: bool = True,
    pictures: Pictures = no_pictures,
) -> Task:
    """A task with a case per claim. Raises nothing.

    Args:
        records: gives the file's records.
        claims_of: gives a record's claims; a record that it refuses is a row that is no case.
        pictures: gives the files of a record's pictures, which each of its claims has.
        name, spec, path, replayable: as in `Task`.
    """
    return Task(
        spec=spec,
        name=name,
        path=path,
        labels=CLAIM_LABELS,
        replayable=replayable,
        read=partial(_rows, records, claims_of),
        parse=_parse,
        refer=_refer,
        pictures=pictures,
    )


def source_name(text: str) -> str:
    """A short name, 16 hex digits, for a text that several claims are about: the same for the same text.

    >>> source_name("An article."), source_name(" an  article .\\n") == source_name("An article.")
    ('96a97c9ecca2590c', True)
    """
    return text_hash(text)[:16]


def _rows(records: Callable[[], Iterator[Row]], claims_of: ClaimsOf) -> Iterator[Row]:
    for record in records():
        if record.problem is not None:
            yield record
            continue
        try:
            found = tuple(claims_of(record))
        except TaskFileError as problem:
            yield Row(record.file, record.line, {}, problem)
            continue
        for claim in found:
            yield Row(record.file, record.line, {**record.values, _CLAIM: claim})


_CLAIM = "(claim)"


def _claim(row: Row) -> Claim:
    return cast(Claim, row.values[_CLAIM])


def _parse(row: Row, default_id: str) -> tuple[Case, str | None]:
    claim = _claim(row)
    case = Case(
        id=claim.id or default_id,
        question=claim.text,
        labels=CLAIM_LABELS,
        aliases=CLAIM_ALIASES,
        passage=claim.passage,
        title=claim.title,
        documents=claim.documents,
    )
    return case, claim.gold


def _refer(row: Row) -> Reference:
    claim = _claim(row)
    return Reference(group=claim.group, part=claim.part, tags=dict(claim.tags))
