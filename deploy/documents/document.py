"""A document as it was read: its name and its text, page by page where it has pages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """What one file says.

    Attributes:
        name: unique among the documents of a library.
        pages: its text, page by page; one for a document without pages. Every one may be empty, but not all.
        paged: whether its pages have numbers.
    """

    name: str
    pages: tuple[str, ...]
    paged: bool = False
