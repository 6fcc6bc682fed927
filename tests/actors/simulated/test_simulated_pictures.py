"""The simulated reader of pictures: it tells the bytes that arrived, embedded and through both vendors' wires."""

from __future__ import annotations

import io
import json
import re
from hashlib import sha256
from typing import Any
from urllib.request import urlopen

import pytest
from claim_prompts import claim, extraction, vision_prompt
from openai_server import VENDORS, MakeVendor, simulated_server
from PIL import Image as Pillow
from simulated_calls import model

from moot.protocols.case import Image
from moot.protocols.messages import Decoding

DECODING = Decoding(temperature=0.6, top_p=None, max_tokens=400)
TERMS = "Describe what the picture shows of: penguins, colony, flippers, ice, metres, coast."


def picture(kind: str = "PNG", size: tuple[int, int] = (32, 20), colour: str = "red") -> Image:
    written = io.BytesIO()
    Pillow.new("RGB", size, colour).save(written, kind)
    return Image(f"image/{kind.lower()}", written.getvalue())


def look(*images: Image, looked_for: str = TERMS, step: str = "a") -> str:
    return model().reply(vision_prompt(looked_for, *images), DECODING, step).text


@pytest.mark.parametrize(("kind", "named"), [("PNG", "PNG"), ("JPEG", "JPEG"), ("WEBP", "WebP")])
def test_it_names_what_the_bytes_are(kind: str, named: str) -> None:
    """Whatever the media type says."""
    given = Image("image/png", picture(kind, (61, 47)).data)
    told = look(given)
    digest = sha256(given.data).hexdigest()[:12]
    assert (
        f"is a {named} of 61 x 47 pixels; it has {len(given.data)} bytes, and their SHA-256 begins with {digest}."
        in told
    )
    assert "\n" not in told


def test_several_pictures_are_described_in_order_and_a_broken_one_is_not_read() -> None:
    told = look(picture(), Image("image/png", b"broken"), picture("JPEG"))
    assert re.findall(r"Picture \d (?:is a \w+|cannot be read)", told) == [
        "Picture 1 is a PNG",
        "Picture 2 cannot be read",
        "Picture 3 is a JPEG",
    ]
    assert told.count("It shows") == 2
    assert f"it has 6 bytes, and their SHA-256 begins with {sha256(b'broken').hexdigest()[:12]}." in told


@pytest.mark.usefixtures("vendor_key")
@pytest.mark.parametrize("vendor", sorted({*VENDORS} - {"responses"}), indirect=True)  # which it does not serve
async def test_the_bytes_arrive(vendor: MakeVendor) -> None:
    images = (picture(), picture("JPEG", (40, 30)), picture("WEBP", (9, 8)))
    messages, bare = vision_prompt(TERMS, *images), extraction(claim(1))
    with simulated_server(None, seed=7) as port:
        there = vendor(f"http://127.0.0.1:{port}/v1")
        told = await there.complete(messages, DECODING, step_key="c/0/vision/image/0")
        none = await there.complete(bare, DECODING, step_key="c/0/vision/prompt")
        await there.close()
        stats = read_stats(port)
    assert told.text == model().reply(messages, DECODING, "c/0/vision/image/0").text
    assert none.text == model().reply(bare, DECODING, "c/0/vision/prompt").text
    assert all(sha256(image.data).hexdigest()[:12] in told.text for image in images)
    assert (stats["pictures"], stats["picture_bytes"]) == (3, sum(len(image.data) for image in images))
    assert stats["calls"] == 2


def read_stats(port: int) -> dict[str, Any]:
    with urlopen(f"http://127.0.0.1:{port}/stats") as response:
        read: dict[str, Any] = json.load(response)
    return read
