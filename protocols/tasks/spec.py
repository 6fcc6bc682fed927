"""How a task is written: `NAME`, `NAME:PATH`, or `NAME:PATH:OPTION=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from moot.protocols.errors import ConfigError, unknown_name

_OPTION = re.compile(r"([A-Za-z_]+)=([^:/\\]*)")


@dataclass(frozen=True)
class TaskSpec:
    """A task's spec, taken apart; `str` puts it together again.

    Attributes:
        name: of the task.
        path: as it was written; None where there is no colon behind the name.
        options: values by name, as they were written.
    """

    name: str
    path: str | None = None
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> TaskSpec:
        """Takes a spec without options apart, at its first colon. Raises nothing."""
        name, colon, path = text.partition(":")
        return cls(name, path if colon else None)

    def with_options(self, known: Collection[str]) -> TaskSpec:
        """The same with its options taken off the path, from the right: a path may hold colons, too.

        Args:
            known: the options that the task has.

        Raises:
            ConfigError: an option is unknown or there twice.

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

    def __str__(self) -> str:
        path = "" if self.path is None else f":{self.path}"
        return self.name + path + "".join(f":{name}={value}" for name, value in self.options.items())
