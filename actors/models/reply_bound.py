"""The most bytes of a response that are read: a server decides what it sends, not what we keep."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from typing import Any

import httpx2

from moot.actors.models.interface import ModelError

MOST_BYTES = 64 * 2**20
"""Of one response, decompressed. A reply of 100,000 tokens with twenty alternatives each takes half of it."""

_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})


async def bounded(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same chunks, as long as they are no more than `MOST_BYTES` together.

    Raises:
        ModelError: they are more; the kind is `unparsable`, so that nobody asks for them again.
    """
    size = 0
    async with aclosing(chunks) as these:
        async for chunk in these:
            size += len(chunk)
            if size > MOST_BYTES:
                raise ModelError(
                    "unparsable", f"the response is larger than {MOST_BYTES / 2**20:g} MiB", may_be_billed=True
                )
            yield chunk


async def joined(chunks: AsyncIterable[bytes]) -> bytes:
    """All chunks as one."""
    whole = bytearray()
    async for chunk in chunks:
        whole += chunk
    return bytes(whole)


def bounded_client(client: type[httpx2.AsyncClient], **options: Any) -> httpx2.AsyncClient:
    """A client of a vendor's SDK whose responses are bounded; what is streamed is read through `bounded` by its reader.

    Args:
        client: the SDK's class.
        options: its arguments.
    """

    class Bounded(client):  # type: ignore[misc, valid-type]
        """The client, bounded."""

        async def send(self, request: httpx2.Request, *, stream: bool = False, **more: Any) -> httpx2.Response:
            """The response, read to its end unless it is a stream that began well."""
            response = await super().send(request, stream=True, **more)
            if stream and response.is_success:
                return response  # type: ignore[no-any-return]
            try:
                body = await joined(bounded(response.aiter_bytes()))
            finally:
                await response.aclose()
            headers = [
                (name, value) for name, value in response.headers.raw if name.decode().lower() not in _OF_THE_WIRE
            ]
            return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    return Bounded(**options)
