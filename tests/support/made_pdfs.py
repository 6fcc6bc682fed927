"""PDF files for tests: pages with text, without text, and encrypted."""

from __future__ import annotations

import io
from collections.abc import Sequence

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def made_pdf(pages: Sequence[str], *, password: str | None = None, owner_only: bool = False) -> bytes:
    """A PDF with one page per text, line by line; an empty text gives an empty page. Pages with the same text share a
    stream, so that a small file can have many pages.

    Args:
        password: encrypts the file; with `owner_only` against changes only.
    """
    writer = PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    fonts = DictionaryObject({NameObject("/F1"): _names(font)})
    streams = {}
    for text in dict.fromkeys(filter(None, pages)):
        shown = "".join(f"({_escaped(line)}) Tj 0 -14 Td\n" for line in text.split("\n"))
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 72 720 Td\n{shown}ET".encode("latin-1"))
        streams[text] = writer._add_object(stream.flate_encode())
    for text in pages:
        page = writer.add_blank_page(612, 792)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        if text:
            page[NameObject("/Contents")] = streams[text]
    if password is not None:
        writer.encrypt("" if owner_only else password, password, algorithm="RC4-128")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def _names(entries: dict[str, str]) -> DictionaryObject:
    return DictionaryObject({NameObject(key): NameObject(value) for key, value in entries.items()})


def _escaped(line: str) -> str:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
