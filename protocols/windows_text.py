"""Bytes that are partly UTF-8, partly Windows-1252, as files that have been through several hands are."""

from __future__ import annotations

import codecs


def windows_text(raw: bytes) -> str:
    """A text, or a line of one: UTF-8 wherever its bytes are, else Windows-1252.

    The five bytes that Windows-1252 leaves open become the control characters of the same number, as browsers read
    them, so that nothing is lost. Raises nothing.

    >>> windows_text(b"I didn\\x92t"), windows_text("“so”".encode()) == "“so”", windows_text(b"\\x9d")
    ('I didn’t', True, '\\x9d')
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", _CONTROLS)


def _as_control(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


_CONTROLS = "moot.controls"
codecs.register_error(_CONTROLS, _as_control)
