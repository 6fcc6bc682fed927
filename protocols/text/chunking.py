"""Chunking of documents: a chunk is a sentence, or a few short ones, that can be retrieved and quoted by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from moot.protocols.text.sentences import sentence_spans

TOGETHER = 120
"""Most characters of a chunk of several sentences, without its heading."""

LONGEST = 300
"""Most characters of a piece of an overlong sentence."""

PAGE_BREAK = "\f"
"""Page separator: a chunk ends there too, if a sentence does."""

_FAR_LONGER = 1000
"""Length in characters from which a single sentence is cut."""

_LONGEST_HEADING = 120
_ATX_HEADING = re.compile(r"#{1,6}\s+")
_BULLET = re.compile(r"[-*+\u2022\u2013]\s+")
_NUMBER = re.compile(r"\d{1,3}[.)]\s+")
_WORD = re.compile(r"\w")
_SENTENCE_END = re.compile("[.!?\u2026\u3002\uff01\uff1f\u0964\u061f\u06d4][\"')\\]\u201d\u2019]*$")
_CUT = re.compile(rf"\S(?:.{{0,{LONGEST - 2}}}\S)?(?!\S)|\S{{{LONGEST}}}", re.DOTALL)


class Chunk(NamedTuple):
    """Chunk of a text.

    Attributes:
        start: 0-based offset in the text.
        text: its text, white space folded; a heading is on a line of its own.
    """

    start: int
    text: str


class _Line(NamedTuple):
    """Line without surrounding white space: its offsets, and its body after a mark.

    Attributes:
        last: whether it is the last one of its page.
        body: offset of the text after the mark of a heading or an item.
        kind: `heading`, `item`, `number`, or empty for a line without a mark.
    """

    start: int
    end: int
    text: str
    last: bool
    body: int
    kind: str = ""


class _Run(NamedTuple):
    """Consecutive wrapped lines, or one line."""

    lines: Sequence[_Line]
    heading: bool


def chunks_of(text: str) -> list[str]:
    """Chunks of a text, in order; empty for a text without a word.

    A chunk is one sentence, or a few consecutive ones of a paragraph while they are short. A sentence is never split
    unless it is far longer than a chunk. A line that is a whole sentence ends a chunk, and so does an item of a list;
    a line break that only wraps text does not. A heading goes with what follows it.

    >>> chunks_of("# Cats\\nCats sleep much. They\\nhunt at dawn.\\n\\n- Milk?")
    ['Cats\\nCats sleep much. They hunt at dawn.', 'Milk?']
    """
    return [chunk.text for chunk in located_chunks(text)]


def located_chunks(text: str) -> list[Chunk]:
    """As `chunks_of`, with the offset of each chunk."""
    found: list[Chunk] = []
    headings: list[Chunk] = []
    for run in _runs(text):
        pieces = [Chunk(start, " ".join(text[start:end].split())) for start, end in _packed(text, run)]
        if run.heading and sum(len(heading.text) for heading in headings) < LONGEST:
            headings += pieces
        else:
            found += _under(headings, pieces)
            headings = []
    return [*found, *_under(headings, [])]


def _under(headings: Sequence[Chunk], pieces: Sequence[Chunk]) -> list[Chunk]:
    """Pieces, the first with its headings; headings without following text are a piece themselves."""
    if not headings:
        return list(pieces)
    first = "\n".join(piece.text for piece in [*headings, *pieces[:1]])
    return [Chunk(headings[0].start, first), *pieces[1:]]


def _runs(text: str) -> Iterator[_Run]:
    for lines in _paragraphs(text):
        widest = max(len(line.text) for line in lines)
        runs: list[list[_Line]] = [[lines[0]]]
        for before, line in pairwise(lines):
            if _is_break(before, line, widest):
                runs.append([])
            runs[-1].append(line)
        for run, following in zip(runs, [*runs[1:], None], strict=True):
            alone = len(runs) == 1 or (following is not None and not _looks_like_heading(following))
            yield _Run(run, run[0].kind == "heading" or (alone and _looks_like_heading(run)))


def _paragraphs(text: str) -> Iterator[list[_Line]]:
    """Groups of consecutive lines; a line without a word (a blank one, a rule) separates them."""
    lines: list[_Line] = []
    place = 0
    for raw in text.splitlines(keepends=True):
        line = raw.strip()
        start = place + len(raw) - len(raw.lstrip())
        place += len(raw)
        if _WORD.search(line):
            lines.append(_marked(start, line, raw.endswith(PAGE_BREAK)))
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


def _marked(start: int, line: str, last: bool) -> _Line:
    for kind, mark in (("heading", _ATX_HEADING), ("item", _BULLET), ("number", _NUMBER)):
        if found := mark.match(line):
            return _Line(start, start + len(line), line, last, start + found.end(), kind)
    return _Line(start, start + len(line), line, last, start)


def _is_break(before: _Line, line: _Line, widest: int) -> bool:
    """Whether a line break is intended: the next line begins with a mark, or its first word would have fitted."""
    if line.kind or before.kind == "heading":
        return True
    wrapped = len(before.text) + 1 + len(line.text.split(maxsplit=1)[0])
    return 2 * wrapped < widest and not line.text[0].islower()


def _looks_like_heading(run: Sequence[_Line]) -> bool:
    line = run[0]
    if len(run) > 1 or line.kind or len(line.text) > _LONGEST_HEADING or _SENTENCE_END.search(line.text):
        return False
    return len(sentence_spans(line.text)) == 1


def _packed(text: str, run: _Run) -> Iterator[tuple[int, int]]:
    """Offsets of the pieces of a run."""
    first, last = run.lines[0], run.lines[-1]
    spans = [(first.body + start, first.body + end) for start, end in sentence_spans(text[first.body : last.end])]
    if first.kind == "number" and spans:  # the number is part of the text; other marks are not
        spans[0] = (first.start, spans[0][1])
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    whole = {line.end for line in run.lines if line.end in ends and (line.start in starts or line.last)}
    begins: int | None = None
    ended = 0
    for start, end in spans:
        if begins is not None and (ended in whole or end - begins > TOGETHER):
            yield begins, ended
            begins = None
        if end - start > _FAR_LONGER:
            yield from _cut(text, start, end)
            continue
        begins, ended = start if begins is None else begins, end
    if begins is not None:
        yield begins, ended


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for piece in _CUT.finditer(text, start, end):
        yield piece.span()
