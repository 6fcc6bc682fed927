"""The chunks of a library: what one is, their digest, and the file that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec
import pyarrow as pa

from moot.actors.record.folder import write_whole
from moot.protocols.errors import RecordError

_SCHEMA = pa.schema(
    [
        ("document", pa.dictionary(pa.int32(), pa.string())),
        pa.field("chunk", pa.int32(), nullable=False),
        ("page", pa.int32()),
        pa.field("text", pa.string(), nullable=False),
    ]
)
_ROWS = 65_536
"""Rows of one batch of the file, whose texts together stay far below the 2 GiB of an Arrow column."""


class LibraryChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk of a document; see `moot.protocols.lookups.Passage`, which has the same fields."""

    document: str
    chunk: int
    page: int | None
    text: str


def digest_of(chunks: Iterable[LibraryChunk]) -> str:
    """Thirty-two hexadecimal digits for chunks in their order: their documents' names, numbers, pages and texts."""
    whole = blake2b(digest_size=16)
    encode = msgspec.json.Encoder().encode
    for chunk in chunks:
        whole.update(encode((chunk.document, chunk.chunk, chunk.page, chunk.text)))
    return whole.hexdigest()


def write_chunks(path: Path, chunks: Sequence[LibraryChunk]) -> None:
    """Write the file; it is absent or complete.

    Raises:
        RecordError: it cannot be written.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA) as writer:
        table = pa.Table.from_pydict(
            {
                "document": pa.array([c.document for c in chunks]).dictionary_encode(),
                "chunk": [chunk.chunk for chunk in chunks],
                "page": [chunk.page for chunk in chunks],
                "text": [chunk.text for chunk in chunks],
            },
            schema=_SCHEMA,
        )
        writer.write_table(table, max_chunksize=_ROWS)
    write_whole(path, sink.getvalue())


class StoredChunks:
    """The chunks of a file, read as they are asked for: the operating system keeps one copy for all processes.

    Args:
        path: the file.

    Raises:
        RecordError: it is missing or holds something else.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        except (OSError, pa.ArrowInvalid) as error:
            raise RecordError(f"cannot read {path}: {str(error).splitlines()[0]}") from None
        if self._table.schema != _SCHEMA:
            raise RecordError(f"cannot read {path}: it holds no chunks of a library")

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, place: int) -> LibraryChunk:
        row = {name: self._table.column(name)[place].as_py() for name in _SCHEMA.names}
        return LibraryChunk(**row)
