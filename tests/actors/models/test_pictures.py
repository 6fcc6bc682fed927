"""Pictures that users give: what is sent of them, and what is refused."""

from __future__ import annotations

import io
import random
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from openai_server import serving_in_thread
from pictures import picture
from PIL import Image as Pillow
from PIL.PngImagePlugin import PngInfo

from moot.actors.models import pictures
from moot.actors.models.pictures import LONGEST_SIDE_PIXELS, load_image, load_images
from moot.protocols.case import Image
from moot.protocols.errors import ConfigError


def noise(size: tuple[int, int], kind: str = "PNG") -> bytes:
    written = io.BytesIO()
    pixels = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), np.uint8)
    Pillow.fromarray(pixels).save(written, kind, quality=100)
    return written.getvalue()


def opened(image: Image) -> Pillow.Image:
    shown = Pillow.open(io.BytesIO(image.data))
    assert f"image/{(shown.format or '').lower()}" == image.media_type
    shown.load()
    return shown


@pytest.mark.parametrize(("kind", "media_type"), [("PNG", "png"), ("JPEG", "jpeg"), ("WEBP", "webp")])
def test_a_small_picture_is_sent_as_it_is(tmp_path: Path, kind: str, media_type: str) -> None:
    data = picture(kind)
    path = tmp_path / "really.gif"  # the name says nothing
    path.write_bytes(data)
    expected = Image(f"image/{media_type}", data)
    assert load_images([path, str(path), data]) == [expected] * 3


def with_exif(kind: str) -> bytes:
    exif = Pillow.Exif()
    exif[0x0112] = 6  # turn by a quarter
    exif[0x010F] = "maker of cameras"
    return picture(kind, exif=exif.tobytes())


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_metadata_goes_and_its_turn_is_made(kind: str) -> None:
    shown = opened(load_image(with_exif(kind)))
    assert shown.size == (10, 20)
    assert not shown.getexif()
    assert b"maker of cameras" not in load_image(with_exif(kind)).data


def test_texts_go() -> None:
    texts = PngInfo()
    texts.add_text("Author", "somebody private")
    assert b"private" not in load_image(picture(pnginfo=texts)).data
    assert b"private" not in load_image(picture("JPEG", comment=b"somebody private")).data


@pytest.mark.parametrize(("size", "scaled"), [((4000, 1000), (1568, 392)), ((1, 3000), (1, 1568))])
def test_a_large_picture_is_scaled(size: tuple[int, int], scaled: tuple[int, int]) -> None:
    image = load_image(picture(size=size))
    assert opened(image).size == scaled
    assert image.media_type == "image/png"


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_picture_of_many_bytes_is_re_encoded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pictures.LARGEST_SENT_BYTES == 5_000_000
    monkeypatch.setattr(pictures, "LARGEST_SENT_BYTES", 400_000)
    data = noise((600, 600), kind)
    assert len(data) > 400_000
    image = load_image(data)
    assert len(image.data) <= 400_000
    assert image.media_type == "image/jpeg"
    assert max(opened(image).size) <= LONGEST_SIDE_PIXELS


def test_of_a_moving_picture_the_first_frame() -> None:
    frames = [Pillow.new("RGB", (20, 10), colour) for colour in ("red", "blue")]
    written = io.BytesIO()
    frames[0].save(written, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    shown = opened(load_image(written.getvalue()))
    red, _, blue = np.asarray(shown.convert("RGB"))[5, 5]
    assert not getattr(shown, "is_animated", False)
    assert red > 200 > 60 > blue


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "PNG, JPEG or WebP"),
        (b"hello", "PNG, JPEG or WebP"),
        (picture("GIF"), "PNG, JPEG or WebP"),
        (picture("BMP"), "PNG, JPEG or WebP"),
        (noise((64, 64))[:-3000], "broken"),
        (noise((64, 64), "JPEG")[:-3000], "broken"),
    ],
)
def test_what_is_no_picture(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "cat.png"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=rf"cat\.png: .*{said}") as caught:
        load_image(path)
    assert "\n" not in str(caught.value)


def test_a_bomb_is_not_unpacked() -> None:
    header = bytearray(picture(size=(8, 8)))
    header[16:24] = (60_000).to_bytes(4, "big") * 2
    header[29:33] = zlib.crc32(header[12:29]).to_bytes(4, "big")
    with pytest.raises(ConfigError, match="more than 50 million pixels"):
        load_image(bytes(header))
    flat = io.BytesIO()
    Pillow.new("1", (8000, 7000)).save(flat, "PNG")
    with pytest.raises(ConfigError, match="50 million"):
        load_image(flat.getvalue())


def test_a_file_that_is_too_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pictures, "LARGEST_FILE_BYTES", 1 << 20)
    (tmp_path / "cat.png").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(ConfigError, match=r"cat\.png.* 1 MiB"):
        load_image(tmp_path / "cat.png")


def test_any_damage_gives_a_picture_or_one_line() -> None:
    rng = random.Random(3)
    whole = [picture("PNG"), picture("JPEG"), picture("WEBP"), with_exif("JPEG"), with_exif("WEBP"), picture(mode="P")]
    said = []
    for _ in range(500):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        del data[rng.randrange(len(data), 2 * len(data)) :]
        try:
            opened(load_image(bytes(data)))
        except ConfigError as error:
            said.append(str(error))
    assert 50 < len(said) < 500
    assert not any("\n" in line for line in said)


# Addresses

PICTURE = picture("PNG")


async def _site(request: web.Request) -> web.Response:
    """`/v1/cat` is a picture; `/v1/to/URL` leads elsewhere; `/v1/loop` to itself; the rest is wrong in its own way."""
    path = request.path.removeprefix("/v1")
    if path.startswith("/to/"):
        return web.Response(status=302, headers={"Location": path.removeprefix("/to/")})
    known: dict[str, tuple[int, bytes, dict[str, str]]] = {
        "/cat": (200, PICTURE, {}),
        "/loop": (302, b"", {"Location": "/v1/loop"}),
        "/nowhere": (302, b"", {}),
        "/text": (200, b"a cat", {}),
    }
    status, body, headers = known.get(path, (404, b"", {}))
    return web.Response(status=status, body=body, headers=headers)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serving_in_thread(_site) as port:
        yield f"http://127.0.0.1:{port}/v1"


def test_a_picture_behind_an_address(site: str) -> None:
    expected = Image("image/png", PICTURE)
    assert load_images([f"{site}/cat", f"{site}/to/{site}/cat", f"{site}/to//v1/cat"]) == [expected] * 3


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/other", "HTTP 404"),
        ("/loop", "more than 5 redirects"),
        ("/nowhere", "which is not followed"),
        ("/to/file:///etc/passwd", "which is not followed"),
        ("/to/ftp://127.0.0.1/cat", "which is not followed"),
        ("/text", "PNG, JPEG or WebP"),
    ],
)
def test_an_address_that_leads_to_no_picture(site: str, path: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        load_image(site + path)
    assert str(caught.value).startswith(f"{site}{path}: ")
    assert "\n" not in str(caught.value)


def test_an_address_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "DOWNLOAD_S", 0.1)
    # it takes connections, and serves none
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(ConfigError, match=r"0\.1 s"):
        load_image(f"http://127.0.0.1:{server.getsockname()[1]}/cat")


def test_a_password_in_an_address_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        load_image("http://me:hunter2@127.0.0.1:1/cat")
    assert "hunter2" not in str(caught.value)
