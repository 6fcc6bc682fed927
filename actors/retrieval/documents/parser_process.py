"""Parser process for documents: a document may crash it, and the program that started it continues.

A request is a line of JSON and the bytes of one file; the reply is a line of JSON. The operating system enforces the
request's limits of memory and CPU time.
"""

from __future__ import annotations

import errno
import math
import resource
import sys
import time
from typing import BinaryIO

import msgspec

from moot.actors.retrieval.documents.parser_client import MOST_CHARACTERS, ParseReply, ParseRequest
from moot.protocols.errors import ConfigError


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Serves parse requests until the input ends."""
    while line := source.readline():
        request = msgspec.json.decode(line, type=ParseRequest)
        raw = source.read(request.size_bytes)
        _set_rlimit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + request.seconds)
        _set_rlimit(resource.RLIMIT_AS, request.memory_bytes)
        sink.write(_encoded(parse_document(request.kind, raw)) + b"\n")
        sink.flush()


def parse_document(kind: str, raw: bytes) -> ParseReply:
    """Parses the bytes of a file to text, or to the reason for failure; exceptions are reported, not raised."""
    try:
        pages = _pages(kind, raw)
    except ConfigError as error:
        return ParseReply(refused=str(error))
    except Exception as error:  # third-party parsers on untrusted bytes
        # SystemError: raised by the interpreter when an allocation failed without an exception.
        is_full = isinstance(error, MemoryError | SystemError) or getattr(error, "errno", None) == errno.ENOMEM
        if is_full:
            return ParseReply(
                refused="it needs more memory to be read than a document may: split it, or save it as text"
            )
        return ParseReply(refused=f"it is broken ({type(error).__name__})")
    if sum(map(len, pages)) > MOST_CHARACTERS:
        return ParseReply(refused=f"its text is longer than {MOST_CHARACTERS:,} characters: split it")
    return ParseReply(pages=pages)


def _pages(kind: str, raw: bytes) -> tuple[str, ...]:
    """Pages of a file; each parser is imported when the first file needs it."""
    if kind == ".pdf":
        from moot.actors.retrieval.documents.pdf import read_pdf

        return read_pdf(raw)
    from moot.actors.retrieval.documents.web_page import read_markdown, read_web_page

    return (read_markdown(raw) if kind in (".md", ".markdown") else read_web_page(raw),)


def _encoded(reply: ParseReply) -> bytes:
    try:
        return msgspec.json.encode(reply)
    except UnicodeEncodeError:
        return msgspec.json.encode(ParseReply(refused="it holds a lone surrogate, which is not Unicode text"))


def _set_rlimit(what: int, most: int) -> None:
    """Sets a resource limit of this process, or keeps a lower existing one."""
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    _set_rlimit(resource.RLIMIT_CORE, 0)
    replies = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a parser prints must not mix with replies
    serve(sys.stdin.buffer, replies)
