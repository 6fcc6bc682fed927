"""Image preprocessing: user images validated, bounded in size, and without metadata.

A picture that is small enough and has no metadata is sent unchanged, byte for byte; any other one is re-encoded.
Addresses are fetched at once, so that a model gets, and a fingerprint covers, the bytes and never the address.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp
import numpy as np
from PIL import Image as Pillow
from PIL import ImageOps, UnidentifiedImageError
from yarl import URL

from moot.actors.models.http_client import reason
from moot.actors.models.proxies import environment_proxy
from moot.actors.telemetry.redaction import redact
from moot.protocols.case import Image
from moot.protocols.errors import ConfigError
from moot.protocols.regular_files import cause, read_regular

PictureSource = str | Path | bytes
"""A file's name, an `http://` or `https://` address, or the file's bytes."""

LARGEST_FILE_BYTES = 20 * 2**20
"""Most bytes read of a file or an address."""

LARGEST_PIXELS = 50_000_000
"""Most pixels (width times height): a small file can declare a picture that fills the memory."""

LARGEST_SENT_BYTES = 5 * 10**6
"""Maximum bytes of one image, before base64; the smallest limit among the vendors."""

LONGEST_SIDE_PIXELS = 1568
"""Longest side; larger pictures are scaled down. The vendors scale at least as much."""

_READ = ("PNG", "JPEG", "WEBP")
_FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "MPO": "image/jpeg"}
"""Media types by Pillow's format; it calls some cameras' JPEGs MPO."""

_METADATA = ("exif", "xmp", "comment", "photoshop", "XML:com.adobe.xmp", "Raw profile type exif")
_JPEG_QUALITY = 90
_AT_ONCE = 8


def load_image(source: PictureSource) -> Image:
    """Loads a PNG, JPEG or WebP image; the format is detected from its bytes, not its name.

    Larger images are scaled to a longest side of `LONGEST_SIDE_PIXELS` and re-encoded in at most `LARGEST_SENT_BYTES`.
    Metadata (place, camera, comments) is removed, after its rotation is applied. Of an animation the first frame is
    used.

    Args:
        source: a file's name, an address that is fetched now, or the bytes themselves.

    Raises:
        ConfigError: names the source: it cannot be read, is too large, or is no whole picture of these formats.
    """
    name, data = _read(source)
    return _fit(name, data)


def load_images(sources: Sequence[PictureSource]) -> list[Image]:
    """Loads several images concurrently, in order; see `load_image`."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(load_image, sources))


def _read(source: PictureSource) -> tuple[str, bytes]:
    """Name of the source for error messages, and its bytes."""
    if isinstance(source, bytes):
        name, data = "the given picture", source
    elif isinstance(source, str) and source.lower().startswith(("http://", "https://")):
        name, data = redact(source), download(source, LARGEST_FILE_BYTES)
    else:
        name, data = str(source), _file(Path(source))
    if len(data) > LARGEST_FILE_BYTES:
        raise ConfigError(f"{name}: the file is larger than {LARGEST_FILE_BYTES >> 20} MiB")
    return name, data


def _file(path: Path) -> bytes:
    try:
        return read_regular(path.expanduser(), LARGEST_FILE_BYTES)
    except (OSError, ValueError) as error:
        reason = cause(error) if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{path}: the picture cannot be read ({reason})") from None


def _fit(name: str, data: bytes) -> Image:
    try:
        picture = Pillow.open(io.BytesIO(data), formats=_READ)
        width, height = picture.size
        if width * height > LARGEST_PIXELS:
            raise ConfigError(f"{name}: {width} x {height} pixels are more than {LARGEST_PIXELS // 10**6} million")
        picture.load()
        return _unchanged(picture, data) or _re_encoded(picture)
    except ConfigError:
        raise
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning):
        raise ConfigError(f"{name}: more than {LARGEST_PIXELS // 10**6} million pixels") from None
    except UnidentifiedImageError:
        raise ConfigError(f"{name}: expected a PNG, JPEG or WebP picture{_instead(data)}") from None
    except Exception as error:  # Pillow's decoders raise any exception on a broken file
        raise ConfigError(f"{name}: the picture is broken ({' '.join(str(error).split())[:120]})") from None


def _instead(data: bytes) -> str:
    """Hint for a known other format; empty for none."""
    if not data:
        return ", found an empty file"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return ", found a GIF: save the frame that matters as PNG"
    return ""


def _unchanged(picture: Pillow.Image, data: bytes) -> Image | None:
    """The file's unchanged bytes, if they may be sent."""
    texts = getattr(picture, "text", None)
    moves = getattr(picture, "is_animated", False)
    large = len(data) > LARGEST_SENT_BYTES or max(picture.size) > LONGEST_SIDE_PIXELS
    if large or texts or moves or any(picture.info.get(key) for key in _METADATA) or picture.format is None:
        return None
    return Image(_FORMATS[picture.format], data)


def _re_encoded(picture: Pillow.Image) -> Image:
    """Re-encoded image: a PNG where the original was one and it fits, else a JPEG, on white where transparent."""
    lossless = picture.format == "PNG"
    upright = _eight_bit(ImageOps.exif_transpose(picture))
    upright.thumbnail((LONGEST_SIDE_PIXELS, LONGEST_SIDE_PIXELS), Pillow.Resampling.LANCZOS)
    upright.info = {}
    if lossless:
        written = io.BytesIO()
        upright.save(written, "PNG")
        if written.tell() <= LARGEST_SENT_BYTES:
            return Image("image/png", written.getvalue())
    written = io.BytesIO()
    _on_white(upright).save(written, "JPEG", quality=_JPEG_QUALITY)
    return Image("image/jpeg", written.getvalue())


def _eight_bit(picture: Pillow.Image) -> Pillow.Image:
    """Colours as bytes, with transparency if present; Pillow itself would clip 16 bits, not scale them."""
    if picture.mode.startswith("I"):
        return Pillow.fromarray((np.clip(np.asarray(picture, np.int64), 0, 65535) >> 8).astype(np.uint8))
    return picture.convert("RGBA" if picture.has_transparency_data else "RGB")


def _on_white(picture: Pillow.Image) -> Pillow.Image:
    if picture.mode != "RGBA":
        return picture
    white = Pillow.new("RGBA", picture.size, "white")
    return Pillow.alpha_composite(white, picture).convert("RGB")


DOWNLOAD_S = 30.0
"""Timeout in seconds of a download."""

_MOST_REDIRECTS = 5
_CHUNK_BYTES = 1 << 16


def download(url: str, largest_bytes: int) -> bytes:
    """Downloads an `http(s)` address; may be called inside an event loop, which it blocks.

    A redirect is followed to `http(s)` only, and from `https` to `https` only. No credentials are sent.

    Raises:
        ConfigError: names the address: it is unreachable, its status is not 200, its content is larger than
            `largest_bytes`, or it takes more than `DOWNLOAD_S` seconds.
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
            async with session.get(here, allow_redirects=False, proxy=environment_proxy(str(here))) as response:
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
