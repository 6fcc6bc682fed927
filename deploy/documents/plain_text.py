"""Bytes of a text file as text: UTF-8, what a byte-order mark says, or Windows-1252."""

from __future__ import annotations

import codecs

from moot.protocols.errors import ConfigError
from moot.protocols.tasks.formats import windows_text

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_plain_text(raw: bytes) -> str:
    """The text.

    >>> read_plain_text("caf\u00e9".encode("utf-16")), read_plain_text(b"caf\\xe9")
    ('caf\u00e9', 'caf\u00e9')

    Raises:
        ConfigError: these are no bytes of a text.
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            try:
                return raw.decode(encoding)
            except UnicodeDecodeError as error:
                raise ConfigError(f"its byte-order mark promises {encoding.upper()}, which it is not") from error
    if b"\0" in raw:
        raise ConfigError("expected text, found bytes that are none")
    return windows_text(raw)
