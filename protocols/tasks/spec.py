"""Task specs: `NAME`, `NAME:PATH`, `NAME:PATH:OPTION=VALUE`, or `NAME:PATH:FIELD=COLUMN,FIELD=COLUMN`."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from moot.protocols.errors import ConfigError, unknown_name

_MAPPED = re.compile(r"([A-Za-z_]+)=(.*)", re.DOTALL)
_OPTION = re.compile(r"([A-Za-z_]+)=([^:/\\]*)")


@dataclass(frozen=True)
class TaskSpec:
    """Parsed task spec; `str` formats it.

    Attributes:
        name: of the task.
        path: as it was written; None where there is no colon behind the name.
        options: values by name, as they were written.
        columns: the file's columns by field, as written.
    """

    name: str
    path: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> TaskSpec:
        """Parses a spec without options, at its first colon. Raises nothing."""
        name, colon, path = text.partition(":")
        return cls(name, path if colon else None)

    def with_options(self, known: Collection[str]) -> TaskSpec:
        """Copy with its options split off the path, from the right: a path may contain colons too.

        Args:
            known: options of the task.

        Raises:
            ConfigError: an option is unknown or repeated.

        >>> found = TaskSpec.parse("asap:a:b.tsv:set=7").with_options(["set"])
        >>> found.path, found.options, str(found)
        ('a:b.tsv', {'set': '7'}, 'asap:a:b.tsv:set=7')
        """
        path, options = self.path or "", dict[str, str]()
        while found := _OPTION.fullmatch(path.rpartition(":")[2]):
            name, value = found.groups()
            if name not in known:
                raise unknown_name(f"option of task {self.name!r}", name, known)
            if name in options:
                raise ConfigError(f"task {self.name!r}: the option {name!r} is there twice")
            options[name] = value
            path = path.rpartition(":")[0]
        return replace(self, path=path, options=dict(reversed(options.items())))

    def with_columns(self, known: Collection[str]) -> TaskSpec:
        """Copy with its column map split off the path; a column name has no comma and no colon.

        Args:
            known: names of the task's fields.

        Raises:
            ConfigError: a field is unknown or repeated, or a part of the map is malformed.

        >>> found = TaskSpec.parse("cases:mc.csv:question=Question text,gold=target").with_columns(["question", "gold"])
        >>> found.path, found.columns, str(found)
        ('mc.csv', {'question': 'Question text', 'gold': 'target'}, 'cases:mc.csv:question=Question text,gold=target')
        """
        path, colon, written = (self.path or "").rpartition(":")
        first = _MAPPED.match(written)
        # a path may contain colons, and folders such as `year=2020/`
        if not (colon and first) or ("/" in written and first[1] not in known):
            return self
        columns: dict[str, str] = {}
        for part in written.split(","):
            found = _MAPPED.fullmatch(part)
            if found is None:
                raise ConfigError(f"task {self.name!r}: expected FIELD=COLUMN between the commas, found {part!r}")
            name, value = found.groups()
            if name not in known:
                raise unknown_name(f"field of task {self.name!r}", name, known)
            if name in columns:
                raise ConfigError(f"task {self.name!r}: the field {name!r} is there twice")
            columns[name] = value.strip()
        return replace(self, path=path, columns=columns)

    def __str__(self) -> str:
        path = "" if self.path is None else f":{self.path}"
        columns = ",".join(f"{name}={column}" for name, column in self.columns.items())
        options = "".join(f":{name}={value}" for name, value in self.options.items())
        return self.name + path + options + (f":{columns}" if columns else "")
