"""PDF text extraction, page by page."""

from __future__ import annotations

import io
import logging

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, PyPdfError

from moot.actors.retrieval.documents.parser_client import MOST_CHARACTERS, MOST_PAGES
from moot.protocols.errors import ConfigError

_OF_BROKEN_FILES = (PyPdfError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions of the reader on bytes that are no PDF or a truncated one."""

# The reader logs hundreds of warnings for a slightly broken file: only for those who configured logging.
logging.getLogger("pypdf").addHandler(logging.NullHandler())


def read_pdf(raw: bytes) -> tuple[str, ...]:
    """Extracts the text of each page; empty for a page without text, such as a scanned one.

    Raises:
        ConfigError: the file is no PDF, is broken, too long, or needs a password.
    """
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):  # an owner password does not prevent reading
            raise _encrypted()
        return _pages(reader)
    except (FileNotDecryptedError, DependencyError):
        raise _encrypted() from None
    except LimitReachedError:
        raise ConfigError("a part of the PDF is too large once it is unpacked") from None
    except _OF_BROKEN_FILES as error:
        raise ConfigError(f"the PDF is broken ({_first_line(error)})") from None


def _pages(reader: PdfReader) -> tuple[str, ...]:
    """Page texts; raises as soon as they are too long: a small file can repeat one page or stream many times."""
    pages: list[str] = []
    length = 0
    for page in reader.pages:
        pages.append(_plain(page.extract_text()))
        length += len(pages[-1])
        if len(pages) > MOST_PAGES or length > MOST_CHARACTERS:
            raise ConfigError(f"the PDF has more than {MOST_PAGES:,} pages or {MOST_CHARACTERS:,} characters: split it")
    return tuple(pages)


def _encrypted() -> ConfigError:
    return ConfigError("the PDF is encrypted: save a copy without a password")


def _plain(text: str) -> str:
    """Removes lone surrogates and NUL, which broken fonts produce."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ").strip()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:100]
