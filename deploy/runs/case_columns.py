"""Columns of a run's cases: which of them the protocol reads, and warnings of those that hold material and are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import get_args

import structlog

from moot.deploy.runs.task import check_case
from moot.protocols.base import CaseField, DebateProtocol
from moot.protocols.case import Case
from moot.protocols.errors import ConfigError
from moot.protocols.registry import PROTOCOLS, make_protocol

_log = structlog.get_logger(__name__)

FIELDS: tuple[CaseField, ...] = get_args(CaseField)
"""Fields of a case that hold material beside its question and labels."""

_MOST_NAMED = 3
"""Most protocols in a warning."""


class CaseColumns:
    """Counts, case by case, the fields with material and those of them that a protocol does not read.

    Nothing is counted as unread of a protocol that does not declare what it reads.

    Args:
        protocol: the run's.
    """

    def __init__(self, protocol: DebateProtocol) -> None:
        self._protocol = protocol
        self._cases = 0
        self._held: Counter[CaseField] = Counter()
        self._unread: dict[CaseField, tuple[int, Case | None]] = {}

    def add(self, case: Case) -> None:
        """Count a case."""
        self._cases += 1
        for field in _held(case):
            self._held[field] += 1
            if self._is_unread(field, case):
                count, first = self._unread.get(field, (0, case))
                self._unread[field] = (count + 1, first)

    def warn_of(self, case: Case) -> None:
        """Count a case that comes by itself, and log a warning of each field that is unread for the first time."""
        known = set(self._unread)
        self.add(case)
        for field in self._unread.keys() - known:
            _log.warning(_unread_words(self._protocol, field, case), case=case.id)

    def warn_of_columns(self, columns: Mapping[str, str]) -> None:
        """Log a warning of each field that no case of the protocol reads, once, before a case is known.

        Args:
            columns: the column by field.
        """
        read = self._protocol.reads
        for field in FIELDS:
            if field in columns and read is not None and field not in read and field not in self._unread:
                self._unread[field] = (0, None)
                _log.warning(_unread_words(self._protocol, field, None, columns))

    def remarks(self, columns: Mapping[str, str]) -> Iterator[str]:
        """A warning of each unread field, with the number of cases that have it.

        Args:
            columns: the file's column by field, where it has another name.
        """
        for field, (count, case) in self._unread.items():
            of = f"{count:,} of {self._cases:,} cases have"
            yield f"{of} {_unread_words(self._protocol, field, case, columns)}"

    def words(self, columns: Mapping[str, str]) -> str:
        """Which columns of the counted cases are read, and which are not."""
        held = [field for field in FIELDS if self._held[field]]
        read = ["question", "labels", *(field for field in held if field not in self._unread)]
        said = [f"{self._protocol.name} reads {', '.join(_named(field, columns) for field in read)}"]
        for off, unread_words in ((False, "not read"), (True, "not read under these settings")):
            unread = [field for field in held if self._is_off(field) is off]
            said += [f"{unread_words}: {', '.join(_named(field, columns) for field in unread)}"] * bool(unread)
        return "; ".join(said)

    def _is_off(self, field: CaseField) -> bool | None:
        """Whether the user's settings are why a field is not read; None for one that is read."""
        return _is_off(self._protocol, field, self._unread[field][1]) if field in self._unread else None

    def _is_unread(self, field: CaseField, case: Case) -> bool:
        read = self._protocol.reads_of(case)
        return read is not None and field not in read


def _held(case: Case) -> Iterator[CaseField]:
    """Fields of a case with material."""
    texts: dict[CaseField, bool] = {
        "passage": bool(case.passage.strip()),
        "choices": any(text.strip() for text in case.choices),
        "documents": any(text.strip() for text in case.documents),
        "images": bool(case.images),
    }
    return (field for field, held in texts.items() if held)


def _unread_words(
    protocol: DebateProtocol, field: CaseField, case: Case | None, columns: Mapping[str, str] | None = None
) -> str:
    column = _named(field, columns or {})
    if _is_off(protocol, field, case):
        return f"{column}, which {protocol.name} does not read under these settings; by default it reads them"
    readers = _readers(field, case)
    named = f"{', '.join(readers[:_MOST_NAMED])} {'reads' if len(readers) == 1 else 'read'} them"
    return f"{column}, which {protocol.name} does not read{f': {named}' if readers else ''}"


def _is_off(protocol: DebateProtocol, field: CaseField, case: Case | None) -> bool:
    """Whether the protocol would read an unread field with its default settings."""
    usual = _by_default(protocol.name)
    return usual is not None and field in ((usual.reads if case is None else usual.reads_of(case)) or ())


def _named(field: str, columns: Mapping[str, str]) -> str:
    column = columns.get(field, field)
    return f"`{field}`" if column == field else f"`{field}` (column {column!r})"


def _readers(field: CaseField, case: Case | None) -> list[str]:
    """Names of the protocols that read a field, of a known case those that can debate it."""
    return [name for name in PROTOCOLS if _can_read(make_protocol(name), field, case)]


def _can_read(protocol: DebateProtocol, field: CaseField, case: Case | None) -> bool:
    if case is None:
        return field in (protocol.reads or ())
    try:
        check_case(protocol, case)
    except ConfigError:
        return False
    return field in (protocol.reads_of(case) or ())


@cache
def _by_default(name: str) -> DebateProtocol | None:
    """Built-in protocol with its default settings; None for a user's own."""
    return make_protocol(name) if name in PROTOCOLS else None
