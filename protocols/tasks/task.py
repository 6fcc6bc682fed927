"""A task: a source of cases that can be checked as a whole and then read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path

import msgspec

from moot.protocols.case import Case, Image, LabelledCase, Reference
from moot.protocols.errors import ConfigError, TaskFileError
from moot.protocols.tasks.in_memory import case_rows, parse_memory
from moot.protocols.tasks.row import ParsedCase, Row, absent_gold_warning, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.unmapped import fixed_remarks
from moot.protocols.text.folding import fold

MOST_SHOWN = 5
"""Most rows in a remark about a file."""


class ContradictionDetector:
    """Finder of contradictions while a task is read; keeps a hash and the right answers of each labelled case."""

    def __init__(self) -> None:
        self._first: dict[bytes, tuple[int, frozenset[str]]] = {}
        self._found: dict[bytes, list[int]] = {}

    def add(self, item: LabelledCase, content: bytes, line: int) -> None:
        """Processes a case with this content hash; `line` is its line in the source."""
        if item.gold is None:
            return
        right = frozenset(fold(answer) or answer for answer in (item.gold, *item.reference.accepted))
        first, known = self._first.setdefault(content, (line, right))
        if not known & right:
            self._found.setdefault(content, [first]).append(line)

    def remark(self) -> str:
        """Remark about all contradictions; empty without any."""
        if not self._found:
            return ""
        each = [" and ".join(f"{line:,}" for line in lines[:MOST_SHOWN]) for lines in self._found.values()]
        return f"rows with the same question and different gold answers: {first_few(each, len(each), '; ')}"


class RepetitionCounter:
    """Counter of cases that repeat an earlier one while a task is read; keeps a hash of each case.

    Cases that the task itself puts into one group do not count.
    """

    def __init__(self) -> None:
        self._seen: dict[bytes, str] = {}
        self._repeated: dict[bytes, int] = {}
        self._lines: list[int] = []

    def add(self, item: LabelledCase, content: bytes, line: int) -> None:
        """Processes a case with this content hash; `line` is its line in the source."""
        group = item.reference.group
        if content not in self._seen:
            self._seen[content] = group
        elif not group or group != self._seen[content]:
            self._repeated[content] = self._repeated.get(content, 0) + 1
            self._lines += [line] if len(self._lines) < MOST_SHOWN else []

    def remark(self) -> str:
        """Remark about all repetitions; empty without any."""
        n = sum(self._repeated.values())
        if not n:
            return ""
        different = len(self._repeated)
        which = f"{different:,} {'question occurs' if different == 1 else 'questions occur'}"
        lines = first_few([f"{line:,}" for line in self._lines], n)
        return (
            f"{which} several times, {n + different:,} cases in all (repeated in rows {lines}): equal cases are one "
            "group in intervals and tests, not independent"
        )


def first_few(each: Sequence[str], total: int, separator: str = ", ") -> str:
    """Text of the first few line numbers, and the count of the others.

    >>> first_few(["2", "4", "5", "7", "8", "9"], 11)
    '2, 4, 5, 7, 8, and 6 more'
    """
    shown = each[:MOST_SHOWN]
    return separator.join([*shown, *([f"and {total - len(shown):,} more"] if total > len(shown) else [])])


Parse = Callable[[Row], Iterable[ParsedCase]]
"""Parser from a row to its cases, in order; none for a skipped row. Raises TaskFileError."""

Pictures = Callable[[Row], tuple[Path | bytes, ...]]
"""Maps a row to the files of its pictures, or the bytes of embedded ones; raises TaskFileError."""

LoadPicture = Callable[[Path | bytes], Image]
"""Loader from a picture's file or bytes to the image that is sent; raises ConfigError."""

_BY_LABEL = Reference()
_PICTURES_KEPT = 8
"""Most cached pictures while cases are read: consecutive cases may share pictures."""


def no_pictures(row: Row) -> tuple[Path | bytes, ...]:
    """Empty list of pictures, for rows without any. Raises nothing."""
    return ()


@dataclass(frozen=True)
class TaskSummary:
    """Result of one pass over a task.

    Attributes:
        spec: the task as the user wrote it.
        name: the task's name.
        count: its cases.
        digest: 32 hex digits over every id, content, gold label and reference, in order, whatever the file's layout.
        gold: cases per gold label, zeros included where the task has a closed set.
        unlabelled: cases without a gold label; they are debated, not scored.
        pictured: cases with pictures.
        remarks: what the user should know of the source, a line each.
    """

    spec: str
    name: str
    count: int
    digest: str
    gold: dict[str, int]
    unlabelled: int
    pictured: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A source of cases. `open_task` makes one from a spec, `Task.from_cases` from your own cases.

    Attributes:
        spec: the spec as the user wrote it, such as `boolq:PATH`.
        name: name of the task, such as `boolq`; generated case ids begin with it.
        path: the file as the user named it; for a task without one, its spec.
        labels: the closed set of answers of every case; None if each case has its own or none.
        replayable: whether the source can be read twice; False for standard input and pipes, whose bad rows
            become invalid cases instead of errors.
        load_picture: reads the pictures that a file names; without it such cases have no pictures.
        remarks: what the user should know about the source after it was read, one line each.
        columns: the source's column by field, where it has another name; known after it was read.
    """

    spec: str
    name: str
    path: str
    labels: tuple[str, ...] | None
    replayable: bool
    read: Callable[[], Iterator[Row]] = field(repr=False, compare=False)
    parse: Parse = field(repr=False, compare=False)
    pictures: Pictures = field(default=no_pictures, repr=False, compare=False)
    load_picture: LoadPicture | None = field(default=None, repr=False, compare=False)
    remarks: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)
    columns: Callable[[], Mapping[str, str]] = field(default=dict, repr=False, compare=False)

    @staticmethod
    def from_cases(cases: Iterable[LabelledCase | Mapping[str, object]], name: str = "mine") -> Task:
        """A task of cases in memory; `validate` reports errors.

        Args:
            cases: each a `LabelledCase` or a mapping with `question` and, where there are such, `id`,
                `passage`, `title`, `labels`, `choices` (one text per label), `aliases` (lists of other spellings,
                by label or one per label), `gold`, `images`, `documents` (texts to retrieve from), `domain`,
                `criterion` (a mapping with `trait`, `lowest`, `highest`, `guide` and, if there is one, `assignment`),
                `judged` (a mapping with `reply`, `sent`, `role`, `domain`), `scoring`, `accepted`, `ratings` (by rater,
                None for a missing one), `group`, `part` and `tags` (texts by name); see `Reference`. A claim to check
                may have `claim`, `label` and `category` instead, as a file of them.
            name: begins the generated ids, and makes the spec `memory:NAME`.
        """
        spec = f"memory:{name}"
        return Task(
            spec=spec,
            name=name,
            path=spec,
            labels=None,
            replayable=True,
            read=partial(case_rows, tuple(cases), spec),
            parse=parse_memory,
        )

    @staticmethod
    def arriving(name: str) -> Task:
        """A task whose cases come one by one while its run lives: reading it gives none.

        Args:
            name: makes the spec `arriving:NAME`.
        """
        spec = f"arriving:{name}"
        return Task(spec, name, spec, labels=None, replayable=False, read=lambda: iter(()), parse=parse_memory)

    def validate(self, observe: Callable[[Case], object] | None = None) -> TaskSummary | None:
        """Reads the whole source once and sums it up; None, unread, when it cannot be read twice.

        Only one row, a few pictures, the ids, and a hash of each case are kept in memory.

        Args:
            observe: called with each case.

        Raises:
            TaskFileError: the source cannot be read, a row is no case, a picture of one is none, an id occurs twice,
                the texts of a case are too long together, or there are no cases.
        """
        if not self.replayable:
            return None
        count, unlabelled, pictured, digest = 0, 0, 0, blake2b(digest_size=16)
        gold: dict[str, int] = dict.fromkeys(self.labels or (), 0)
        finders = RepetitionCounter(), ContradictionDetector()
        for item, row in self._read():
            count += 1
            if observe is not None:
                observe(item.case)
            pictured += bool(item.case.images)
            content = item.case.content_hash()
            digest.update(_fingerprint(item, content))
            for label in (item.case.labels or ()) if self.labels is None else ():
                gold.setdefault(label, 0)
            if item.gold is None:
                unlabelled += 1
            else:
                gold[item.gold] = gold.get(item.gold, 0) + 1
            if self.load_picture is not None or self.pictures is no_pictures:  # pictures may distinguish two cases
                for finder in finders:
                    finder.add(item, bytes.fromhex(content), row.line)
        if not count:
            raise TaskFileError(self.path, 0, "", "expected at least one case, found none")
        absent = absent_gold_warning(unlabelled, count)
        remarks = tuple(filter(None, (*self.remarks(), absent, *(finder.remark() for finder in finders))))
        return TaskSummary(self.spec, self.name, count, digest.hexdigest(), gold, unlabelled, pictured, remarks)

    def cases(self) -> Iterator[LabelledCase]:
        """Reads the cases lazily, in the source's order.

        In a source that cannot be read twice a row that is no case comes as one with `invalid` set, an empty
        question and the id `NAME-INDEX`; a repeated id as one whose id ends in `~INDEX`.

        Raises:
            TaskFileError: as `validate` for a source that can be read twice; for another one only when the
                source as a whole cannot be read, its header is wrong, or it was read before.
        """
        return (item for item, _ in self._read())

    def _read(self) -> Iterator[tuple[LabelledCase, Row]]:
        seen: set[str] = set()
        load = lru_cache(_PICTURES_KEPT)(self.load_picture) if self.load_picture else None
        found = ((row, each) for row in self.read() for each in self._parsed(row))
        for index, (row, each) in enumerate(found):
            gold, invalid, reference = None, "", _BY_LABEL
            fallback = f"{self.name}-{index}"
            try:
                if isinstance(each, TaskFileError):
                    raise each
                case, gold, reference = each
                case = msgspec.structs.replace(case, id=case.id or fallback, scoring=reference.scoring)
                row.check_size(case)
                if load is not None and (files := self.pictures(row)):
                    case = msgspec.structs.replace(case, images=_loaded(row, files, load))
                if case.id in seen:
                    fallback = f"{case.id}~{index}"
                    raise row.error("id", f"expected a unique id, {shown(case.id)} occurs earlier")
            except TaskFileError as error:
                if self.replayable:
                    raise
                while fallback in seen:
                    fallback = f"{fallback}~{index}"
                case, gold, invalid = Case(id=fallback, question=""), None, str(error)
                reference = _BY_LABEL
            seen.add(case.id)
            yield LabelledCase(case, index, gold, invalid, reference), row

    def _parsed(self, row: Row) -> tuple[ParsedCase | TaskFileError, ...]:
        """Cases of a row, or the error of an unreadable one."""
        try:
            return tuple(self.parse(row)) if row.problem is None else (row.problem,)
        except TaskFileError as error:
            return (error,)


@dataclass(frozen=True)
class FileLayout:
    """Layout of a file: how its cases are parsed.

    Attributes:
        rows: reads the rows of a source.
        parse: builds the cases of a row.
        labels: the closed set of answers of every case; None when each case has its own or none.
        pictures: lists the files of a row's pictures.
        fields: names of all columns, for a user's own files: text in any other one is remarked on. Empty for public
            files, which have others.
    """

    rows: Callable[[Source], Iterator[Row]]
    parse: Parse
    labels: tuple[str, ...] | None = None
    pictures: Pictures = no_pictures
    fields: tuple[str, ...] = ()

    def task(self, source: Source, spec: str, name: str) -> Task:
        """Task over a source, named as in `Task`; nothing is read yet. Raises nothing."""
        return Task(
            spec=spec,
            name=name,
            path=source.file,
            labels=self.labels,
            replayable=source.replayable,
            read=partial(self.rows, source),
            parse=self.parse,
            pictures=self.pictures,
            remarks=fixed_remarks(partial(self.rows, source), self.fields) if self.fields else tuple,
        )


def _loaded(row: Row, files: tuple[Path | bytes, ...], load: LoadPicture) -> tuple[Image, ...]:
    try:
        return tuple(map(load, files))
    except ConfigError as error:
        raise row.error("", str(error)) from None


def _fingerprint(item: LabelledCase, content: str) -> bytes:
    """Identity of a case; without its reference where that is the default, as in older runs."""
    identity = (item.case.id, content, item.gold)
    if item.reference == _BY_LABEL:
        return msgspec.msgpack.encode(identity)
    reference = msgspec.structs.asdict(item.reference)
    if not item.reference.tags:
        del reference["tags"]
    return msgspec.msgpack.encode((*identity, reference))
