"""Sandboxed document parsing: a client of a separate process, so that no file can hang or exhaust the program."""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import subprocess
import sys

import msgspec

from moot.protocols.errors import ConfigError
from moot.protocols.tasks.formats import windows_text

MOST_BYTES = 64 * 2**20
"""Most bytes of a file."""

MOST_CHARACTERS = 64 * 2**20
"""Most characters of a document's text: a small file can unpack to any length."""

MOST_PAGES = 20_000
"""Most pages of a document."""

MOST_MEMORY_BYTES = 2 * 2**30
"""Memory limit of the parser process (address space)."""

_SECONDS, _SECONDS_PER_MIB = 20, 10


def parse_timeout_s(size_bytes: int) -> int:
    """CPU time limit of a document in seconds: several times what ordinary files of its size take.

    >>> parse_timeout_s(6_000), parse_timeout_s(64 * 2**20)
    (21, 660)
    """
    return _SECONDS + -(-size_bytes * _SECONDS_PER_MIB // 2**20)


_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_plain_text(raw: bytes) -> str:
    """Decodes a text file: UTF-8, the encoding of a byte-order mark, or Windows-1252.

    >>> read_plain_text("caf\u00e9".encode("utf-16")), read_plain_text(b"caf\\xe9")
    ('caf\u00e9', 'caf\u00e9')

    Raises:
        ConfigError: the bytes are not a text.
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


_READER = "moot.actors.retrieval.documents.parser_process"
_MOST_REPLY_BYTES = 6 * MOST_CHARACTERS + 3 * MOST_PAGES + 2**10
"""Escape factor: a control character takes six bytes in JSON."""


class ParseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Header of a parse request, before the bytes of a file.

    Attributes:
        kind: the file's suffix, in lower case.
        size_bytes: number of bytes that follow.
        seconds: CPU time limit.
        memory_bytes: memory limit of the process.
    """

    kind: str
    size_bytes: int
    seconds: int
    memory_bytes: int


class ParseReply(msgspec.Struct, frozen=True, kw_only=True):
    """Reply of the parser: the text of a file.

    Attributes:
        pages: its text, page by page; one for a document without pages.
        refused: reason why it cannot be read, in one line; empty on success.
    """

    pages: tuple[str, ...] = ()
    refused: str = ""


class DocumentParser:
    """Document parser client for web pages, Markdown and PDF files; a context manager, which ends its process.

    One process, started for the first file, reads all files. It receives bytes and returns texts, which are treated as
    plain data.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> DocumentParser:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(BrokenPipeError):
                self._process.communicate()
            self._process = None

    def pages(self, kind: str, raw: bytes) -> tuple[str, ...]:
        """Parses a file to text, page by page; one page for a kind without pages.

        Args:
            kind: the file's suffix, in lower case.
            raw: its bytes.

        Raises:
            ConfigError: the file cannot be read, or exceeds the time or memory limit.
        """
        if self._process is None:
            self._process = _started()
        seconds = parse_timeout_s(len(raw))
        request = ParseRequest(kind=kind, size_bytes=len(raw), seconds=seconds, memory_bytes=MOST_MEMORY_BYTES)
        line = _asked(self._process, msgspec.json.encode(request) + b"\n", raw)
        if not line.endswith(b"\n"):
            self._process.kill()
            raise ConfigError(_why(self._process.wait(), seconds))
        try:
            reply = msgspec.json.decode(line, type=ParseReply)
        except msgspec.MsgspecError:
            raise ConfigError("the process that was reading it gave no text") from None
        if reply.refused:
            raise ConfigError(reply.refused)
        return reply.pages


def _started() -> subprocess.Popen[bytes]:
    """Starts the process with this one's import path, without the working directory."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", _READER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _asked(process: subprocess.Popen[bytes], *parts: bytes) -> bytes:
    """Sends a request and returns the reply line; truncated or empty when the process has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.writelines(parts)
        process.stdin.flush()
    except BrokenPipeError:
        return b""
    return process.stdout.readline(_MOST_REPLY_BYTES)


def _why(returned: int, seconds: int) -> str:
    if returned == -signal.SIGXCPU:
        return f"it takes more than {seconds} s of computing to be read: split it, or save it as text"
    how = f"exit code {returned}" if returned >= 0 else signal.Signals(-returned).name
    return f"the process that was reading it ended ({how}): split it, or save it as text"
