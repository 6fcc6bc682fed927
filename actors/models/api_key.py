"""API keys: known by the name of an environment variable, read when needed, never kept and never shown."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from moot.protocols.errors import MissingKey

_LOOKS_SECRET = re.compile(
    r"(?P<scheme>\bbearer\s+)[^\s\"',;]+"  # a header that was echoed
    r"|\b(?:sk|pk|rk|hf|gsk|xai|key)[-_][\w*.\-]{6,}"  # the usual shapes of vendors' keys, masked or not
    r"|(?P<slashes>//)[^/@\s]+@",  # user:password@ in a URL
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key by name. Holds the variable's name only, so it may be printed, pickled and logged.

    Attributes:
        env: name of the environment variable; None when the server needs no key.
    """

    env: str | None

    def read(self) -> str | None:
        """The key, freshly from the environment; None when the server needs none.

        Raises:
            MissingKey: the variable is unset, blank, or holds what cannot be sent in a header.
        """
        if self.env is None:
            return None
        key = os.environ.get(self.env, "").strip()
        if not key:
            raise MissingKey(f"no API key: set the environment variable {self.env} (export {self.env}=...)")
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise MissingKey(
                f"the environment variable {self.env} does not hold a key: spaces or control characters in it"
            )
        return key


def redact(text: str, key: str | None = None) -> str:
    """`text` with `key`, and whatever looks like a key or a password in a URL, replaced by `[secret]`.

    >>> redact("Incorrect API key provided: sk-abcdef123. See https://u:p@host/")
    'Incorrect API key provided: [secret] See https://[secret]@host/'
    """
    if key:
        text = text.replace(key, "[secret]")
    return _LOOKS_SECRET.sub(_replacement, text)


def _replacement(match: re.Match[str]) -> str:
    if match["slashes"]:
        return "//[secret]@"
    return f"{match['scheme'] or ''}[secret]"
