"""Fetching a picture from an address that the user gave: bounded in bytes, in time and in where it may lead."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import aiohttp
from yarl import URL

from moot.actors.models.api_key import redact
from moot.actors.models.connection_errors import reason
from moot.protocols.errors import ConfigError

DOWNLOAD_S = 30.0
"""Seconds that one download may take in all."""

_MOST_REDIRECTS = 5
_CHUNK_BYTES = 1 << 16


def download(url: str, largest_bytes: int) -> bytes:
    """The body behind an `http(s)` address; may be called inside an event loop, which it blocks.

    A redirect is followed to `http(s)` only, and from `https` to `https` only. Nothing of ours is sent along.

    Raises:
        ConfigError: naming the address: not reachable, not 200, larger than `largest_bytes`, or not there in
            `DOWNLOAD_S` seconds.
    """
    name = redact(url)
    with ThreadPoolExecutor(1) as thread:
        try:
            return thread.submit(asyncio.run, _fetch(url, name, largest_bytes)).result()
        except TimeoutError:
            raise ConfigError(f"{name}: the picture was not there within {DOWNLOAD_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            why = redact(" ".join(reason(error).split()))[:200]
            raise ConfigError(f"{name}: the picture cannot be fetched: {why}") from None


async def _fetch(url: str, name: str, largest_bytes: int) -> bytes:
    timeout = aiohttp.ClientTimeout(total=None)
    async with asyncio.timeout(DOWNLOAD_S), aiohttp.ClientSession(timeout=timeout) as session:
        here = URL(url)
        for _ in range(_MOST_REDIRECTS + 1):
            async with session.get(here, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308):
                    here = _next(here, response.headers.get("Location", ""), name)
                    continue
                if response.status != 200:
                    raise ConfigError(f"{name}: the picture cannot be fetched: HTTP {response.status}")
                return await _body(response, name, largest_bytes)
    raise ConfigError(f"{name}: more than {_MOST_REDIRECTS} redirects")


def _next(here: URL, location: str, name: str) -> URL:
    there = here.join(URL(location))
    if not location or there.scheme not in ("https", here.scheme):
        raise ConfigError(f"{name}: it redirects to {redact(str(there))[:200]!r}, which is not followed")
    return there


async def _body(response: aiohttp.ClientResponse, name: str, largest_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > largest_bytes:
            raise ConfigError(f"{name}: the picture is larger than {largest_bytes >> 20} MiB")
    return bytes(body)
