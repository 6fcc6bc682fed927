"""Python API of libraries: `moot.index`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from moot.actors.encoders.interface import Encoder
from moot.actors.encoders.resolve import identity, make_encoder
from moot.actors.models.retry import RetryPolicy
from moot.actors.retrieval.build import build_library
from moot.actors.retrieval.documents.docs import DocumentSet, documents_from_texts, open_documents
from moot.actors.retrieval.library import StoredLibrary
from moot.protocols.errors import ConfigError
from moot.protocols.lookups import Passage

Named = str | os.PathLike[str]


class Library:
    """Searchable library of documents, from `moot.index`; a context manager that closes it.

    It can be given as `docs=` to a run, which then opens its folder.

    Attributes:
        path: its folder; a temporary one is removed when the library is closed.
    """

    def __init__(self, path: Path, stored: StoredLibrary, encoder: Encoder, scratch: TemporaryDirectory[str]):
        self.path = path
        self._stored, self._encoder, self._scratch = stored, encoder, scratch
        self._closed = False

    def __len__(self) -> int:
        """How many chunks there are."""
        return len(self._stored)

    def __fspath__(self) -> str:
        if self._closed:
            raise ConfigError("the library is closed: use it inside its `async with`, or index with `out`")
        return str(self.path)

    def __repr__(self) -> str:
        return f"Library({str(self.path)!r}, chunks={len(self)}, encoder={self._encoder.name!r})"

    async def search(self, query: str, n: int = 5) -> list[Passage]:
        """Nearest-neighbour search: the `n` chunks nearest to a text by cosine, best first, ties by position; exact.

        Raises:
            EncoderFailed: the text cannot be embedded.
        """
        (vector,) = await self._encoder.encode([query])
        return await self._stored.search(vector, n)

    async def close(self) -> None:
        """Release the files and the encoder."""
        self._closed = True
        await self._stored.close()
        await self._encoder.close()
        self._scratch.cleanup()

    async def __aenter__(self) -> Library:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()


async def index(
    docs: Named | Sequence[Named] | Mapping[str, str],
    *,
    encoder: str = "hashed-ngrams",
    encoder_key_env: str | None = None,
    out: Named | None = None,
) -> Library:
    """Index documents for search: read, split into chunks, embed; an interrupted build is resumed.

    >>> import asyncio
    >>> async def nearest(query):
    ...     async with await index({"cats": "Cats sleep most of the day.", "dogs": "Dogs bark at night."}) as library:
    ...         return [(passage.document, passage.text) for passage in await library.search(query, n=1)]
    >>> asyncio.run(nearest("How long do cats sleep?"))
    [('cats', 'Cats sleep most of the day.')]

    Args:
        docs: files or folders of them (.txt, .md, .html, .pdf), texts by name, or the folder of a finished library.
        encoder: turns texts into vectors; see `moot encoders`.
        encoder_key_env: environment variable with the key of the encoder's server.
        out: the library's folder, which a run can be given as `docs=`; None for one that lasts as long as the library.

    Raises:
        ConfigError: naming the file and what is wrong with it, or `out` holds a library of other documents.
        UserError: the encoder cannot be used.
    """
    name = await asyncio.to_thread(identity, encoder)
    found = await asyncio.to_thread(_opened, docs, name)
    if found.library is not None and out is not None:
        raise ConfigError(f"{found.library} is a library already: leave `out` out")
    made = make_encoder(name, RetryPolicy(), api_key_env=encoder_key_env)
    scratch = TemporaryDirectory(prefix="moot-library-")
    try:
        folder = found.library or _absolute(out or scratch.name)
        if found.library is None:
            await made.check()
            await build_library(folder, found.chunks, made)
        return Library(folder, await asyncio.to_thread(StoredLibrary, folder, name), made, scratch)
    except BaseException:
        await made.close()
        scratch.cleanup()
        raise


def _absolute(folder: Named) -> Path:
    return Path(folder).expanduser().absolute()


def _opened(docs: Named | Sequence[Named] | Mapping[str, str], encoder: str) -> DocumentSet:
    if isinstance(docs, Mapping):
        return documents_from_texts(docs)
    named = [docs] if isinstance(docs, str | os.PathLike) else list(docs)
    if not named:
        raise ConfigError("`docs`: expected at least one document")
    return open_documents([os.fspath(each) for each in named], encoder)
