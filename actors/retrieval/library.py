"""Library on disk (vector index): embedded chunks of documents, opened by every process that searches them.

See `library_folder` for its files.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moot.actors.record.files import write_whole
from moot.actors.retrieval.library_folder import LibraryFolder
from moot.actors.retrieval.nearest import Rows, nearest
from moot.protocols.arrow_messages import check_messages, stream_of
from moot.protocols.errors import EncoderFailed, RecordError
from moot.protocols.lookups import Passage
from moot.protocols.regular_files import map_regular


class StoredLibrary:
    """Finished library, memory-mapped: processes of a machine share one copy of it in the page cache.

    Args:
        folder: its path.
        encoder: identity of the encoder of the queries.

    Raises:
        ConfigError: as `LibraryFolder.check`.
        RecordError: a file is damaged.
    """

    def __init__(self, folder: str | Path, encoder: str) -> None:
        files = LibraryFolder(folder)
        self.note = files.check(encoder)
        self._chunks = StoredChunks(files.chunks_file, is_verified=self.note.chunks_crc32 is not None)
        if len(self._chunks) != self.note.chunks:
            raise RecordError(f"library {files.path}: {len(self._chunks):,} chunks, expected {self.note.chunks:,}")
        shape = (self.note.chunks, self.note.dimension or 0)
        self._searching = SearchBatcher(np.memmap(files.vectors_file, np.float32, "r", shape=shape))

    def __len__(self) -> int:
        return len(self._chunks)

    async def search(self, vector: npt.NDArray[np.float32], n: int) -> list[Passage]:
        """See `moot.actors.debate.context.Retriever.search`.

        Raises:
            EncoderFailed: the vector's size differs from the library's.
        """
        if len(vector) != self.note.dimension:
            size = f"a vector of {len(vector)} numbers, and those of the library have {self.note.dimension}"
            raise EncoderFailed(self.note.encoder, "unparsable", f"it gave {size}: it serves another model now")
        if n < 1:
            return []
        places, similarities = await self._searching.nearest(vector, n)
        return [self._passage(int(p), float(s)) for p, s in zip(places, similarities, strict=True)]

    async def close(self) -> None:
        """Release the files."""
        await self._searching.close()

    def _passage(self, place: int, similarity: float) -> Passage:
        chunk = self._chunks[place]
        return Passage(
            document=chunk.document,
            chunk=chunk.chunk,
            text=chunk.text,
            page=chunk.page,
            similarity=min(1.0, max(-1.0, similarity)),
        )


_SCHEMA = pa.schema(
    [
        ("document", pa.dictionary(pa.int32(), pa.string())),
        pa.field("chunk", pa.int32(), nullable=False),
        ("page", pa.int32()),
        pa.field("text", pa.string(), nullable=False),
    ]
)
_ROWS = 65_536
"""Rows per record batch: their texts stay far below the 2 GiB of an Arrow column."""


class LibraryChunk(msgspec.Struct, frozen=True, kw_only=True):
    """Chunk of a document; see `moot.protocols.lookups.Passage`, which has the same fields."""

    document: str
    chunk: int
    page: int | None
    text: str


def digest_of(chunks: Iterable[LibraryChunk]) -> str:
    """Digest of chunks, 32 hexadecimal digits over their documents' names, numbers, pages and texts, in order."""
    whole = blake2b(digest_size=16)
    encode = msgspec.json.Encoder().encode
    for chunk in chunks:
        whole.update(encode((chunk.document, chunk.chunk, chunk.page, chunk.text)))
    return whole.hexdigest()


def write_chunks(path: Path, chunks: Sequence[LibraryChunk]) -> None:
    """Writes the chunks' file atomically.

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
    """Memory-mapped chunks of a file, read on demand: processes share one copy in the page cache.

    Args:
        path: the file.
        is_verified: whether its checksum was compared; else each value is checked.

    Raises:
        RecordError: the file is missing or has another content.
    """

    def __init__(self, path: Path, *, is_verified: bool) -> None:
        try:
            content = pa.py_buffer(map_regular(path))
            check_messages(content, 0)
            self._table = pa.ipc.open_stream(stream_of(content)).read_all()
            if not is_verified:
                self._table.validate(full=True)
        except (OSError, ValueError) as error:
            raise RecordError(f"cannot read {path}: {str(error).splitlines()[0]}") from None
        if self._table.schema != _SCHEMA:
            raise RecordError(f"cannot read {path}: it holds no chunks of a library")

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, place: int) -> LibraryChunk:
        row = {name: self._table.column(name)[place].as_py() for name in _SCHEMA.names}
        return LibraryChunk(**row)


_MOST_QUERIES = 1024
"""Most queries of one search."""

Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Indices and similarities, best first."""


class _Query(NamedTuple):
    vector: npt.NDArray[np.float32]
    n: int
    found: asyncio.Future[Found]


class SearchBatcher:
    """Batched nearest-neighbour search, in a thread, one batch at a time.

    Args:
        vectors: unit rows, shape (m, d); may be memory-mapped.
    """

    def __init__(self, vectors: Rows) -> None:
        self._vectors: Rows | None = vectors
        self._waiting: deque[_Query] = deque()
        self._working: asyncio.Task[None] | None = None

    async def nearest(self, vector: npt.NDArray[np.float32], n: int) -> Found:
        """Nearest neighbours of a unit vector of shape (d,): `n` rows; see `moot.actors.retrieval.nearest`."""
        if self._vectors is None:
            raise RuntimeError("the library is closed")
        query = _Query(vector, n, asyncio.get_running_loop().create_future())
        self._waiting.append(query)
        if self._working is None:
            self._working = asyncio.create_task(self._work(self._vectors), name="searches of the library")
        return await query.found

    async def close(self) -> None:
        """Release waiting queries and the vectors, once the search in flight is done."""
        self._vectors = None
        while self._waiting:
            self._waiting.popleft().found.cancel()
        if self._working is not None:
            await asyncio.wait([self._working])

    async def _work(self, vectors: Rows) -> None:
        try:
            while self._waiting:
                together = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_QUERIES))]
                await _search(vectors, [query for query in together if not query.found.done()])
        finally:
            self._working = None


async def _search(vectors: Rows, queries: list[_Query]) -> None:
    if not queries:
        return
    try:
        rows = np.stack([query.vector for query in queries])
        places, scores = await asyncio.to_thread(nearest, vectors, rows, max(query.n for query in queries))
    except Exception as error:
        for query in queries:
            if not query.found.done():
                query.found.set_exception(error)
        return
    for query, of_places, of_scores in zip(queries, places, scores, strict=True):
        if not query.found.done():  # cancelled meanwhile
            query.found.set_result((of_places[: query.n], of_scores[: query.n]))
