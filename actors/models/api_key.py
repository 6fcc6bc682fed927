"""API keys: named by an environment variable, read when needed, never stored or printed.

If the variable `X` is not set but `X_FILE` names a file, as containers mount secrets, its content is the key.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Protocol

from moot.protocols.errors import MissingKey
from moot.protocols.regular_files import open_regular

_LONGEST_KEY = 64 * 2**10


class Key(Protocol):
    """Interface of an API key source."""

    @property
    def env(self) -> str | None:
        """Name of the environment variable with the key; None when it comes from elsewhere, or there is none."""
        ...

    def read(self) -> str | None:
        """The key; None when the server needs none. Raises `MissingKey`."""
        ...


@dataclass(frozen=True, slots=True)
class GivenKey:
    """Key of a server that this program started; never printed.

    Attributes:
        value: the key.
    """

    value: str = field(repr=False)
    env: None = None

    def read(self) -> str:
        """The key."""
        return self.value


@dataclass(frozen=True, slots=True)
class ApiKey:
    """API key by name. It stores only the variable's name, so that it may be printed, pickled and logged.

    Attributes:
        env: name of the environment variable; None when the server needs no key.
    """

    env: str | None

    def read(self) -> str | None:
        """Key, read from the environment or its file at each call; None when the server needs none.

        Raises:
            MissingKey: neither the variable nor its file has a key, or the key cannot be sent in a header.
        """
        if self.env is None:
            return None
        key = os.environ.get(self.env, "").strip()
        source = f"the environment variable {self.env}"
        if not key and (named := os.environ.get(f"{self.env}_FILE", "").strip()):
            source = f"the file that {self.env}_FILE names"
            key = _content(named, source)
        if not key:
            raise MissingKey(f"no API key: set the environment variable {self.env} (export {self.env}=...)")
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise MissingKey(f"{source} does not hold a key: spaces or control characters in it")
        return key

    @property
    def set(self) -> bool:
        """Whether a key is set, valid or not."""
        return self.env is not None and any(os.environ.get(name, "").strip() for name in (self.env, f"{self.env}_FILE"))


def _content(named: str, source: str) -> str:
    """Stripped content of a small file."""
    try:
        with open_regular(named) as file:
            return file.read(_LONGEST_KEY).decode(errors="replace").strip()
    except OSError as error:
        raise MissingKey(f"no API key: {source} cannot be read ({error.strerror})") from None
