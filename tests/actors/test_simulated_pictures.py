"""The simulated reader of pictures: it tells the bytes that arrived, embedded and through both vendors' wires."""

from __future__ import annotations

import io
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any
from urllib.request import urlopen

import pytest
from anthropic import AsyncAnthropic, BadRequestError
from claim_prompts import KEY, claim, debating, extraction, looking, ruling
from openai_server import KEY_ENV, compatible, openai, simulated_server
from PIL import Image as Pillow
from simulated_calls import model

from moot.actors.models.anthropic_sdk import AnthropicModel
from moot.actors.models.interface import Model
from moot.protocols.case import Image
from moot.protocols.messages import Decoding, Message

DECODING = Decoding(temperature=0.6, top_p=None, max_tokens=400)
TERMS = "Describe what the picture shows of: penguins, colony, flippers, ice, metres, coast."


def picture(kind: str = "PNG", size: tuple[int, int] = (32, 20), colour: str = "red") -> Image:
    written = io.BytesIO()
    Pillow.new("RGB", size, colour).save(written, kind)
    return Image(f"image/{kind.lower()}", written.getvalue())


def look(*images: Image, looked_for: str = TERMS, step: str = "a") -> str:
    return model().reply(looking(looked_for, *images), DECODING, step).text


def anthropic(url: str) -> AnthropicModel:
    return AnthropicModel("simulated", api_key_env=KEY_ENV, base_url=url.removesuffix("/v1"))


WIRES: dict[str, Callable[[str], Model]] = {"openai": openai, "anthropic": anthropic, "compatible": compatible}


@asynccontextmanager
async def served(wire: str, port: int) -> AsyncIterator[Model]:
    """A client of the server on this port."""
    made = WIRES[wire](f"http://127.0.0.1:{port}/v1")
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture(autouse=True)
def any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, "unused-but-long-enough")


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


def test_several_pictures_are_told_in_order_and_a_broken_one_is_not_read() -> None:
    told = look(picture(), Image("image/png", b"broken"), picture("JPEG"))
    assert re.findall(r"Picture \d (?:is a \w+|cannot be read)", told) == [
        "Picture 1 is a PNG",
        "Picture 2 cannot be read",
        "Picture 3 is a JPEG",
    ]
    assert told.count("It shows") == 2
    assert f"it has 6 bytes, and their SHA-256 begins with {sha256(b'broken').hexdigest()[:12]}." in told


def test_the_reading_hangs_on_bytes_and_words_and_on_nothing_else() -> None:
    assert look(picture(), step="a") == look(picture(), step="b")
    readings = {look(picture(colour=colour)).partition("It shows")[2] for colour in ("red", "blue", "green", "white")}
    assert len(readings) > 1
    shown = re.search(r"It shows ([\w, ]+)\.", look(picture(size=(64, 64))))
    assert shown is not None
    assert set(shown[1].split(", ")) <= set(re.findall(r"\w+", TERMS))


def test_the_extraction_prompt_names_what_the_claim_names() -> None:
    told = model().reply(extraction("Question: Is the red bar the longest?\nAnswer: Yes"), DECODING, "a").text
    assert "red, bar, longest" in told
    assert not re.search(r"\b(question|answer|yes)\b", told)
    assert "?" not in told
    assert "{" not in told


@pytest.mark.parametrize("wire", WIRES)
async def test_the_bytes_arrive(wire: str) -> None:
    images = (picture(), picture("JPEG", (40, 30)), picture("WEBP", (9, 8)))
    messages, bare = looking(TERMS, *images), extraction(claim(1))
    with simulated_server(None, seed=7) as port:
        async with served(wire, port) as there:
            told = await there.complete(messages, DECODING, step_key="c/0/vision/image/0")
            none = await there.complete(bare, DECODING, step_key="c/0/vision/prompt")
        stats = read_stats(port)
    assert told.text == model().reply(messages, DECODING, "c/0/vision/image/0").text
    assert none.text == model().reply(bare, DECODING, "c/0/vision/prompt").text
    assert all(sha256(image.data).hexdigest()[:12] in told.text for image in images)
    assert (stats["pictures"], stats["picture_bytes"]) == (3, sum(len(image.data) for image in images))
    assert stats["calls"] == 2


@pytest.mark.parametrize("wire", WIRES)
async def test_debaters_and_judges_say_the_same_over_http(wire: str) -> None:
    prompts: Sequence[list[Message]] = [
        debating(claim(3)),
        debating(claim(4), ["DENY. E1 does not carry it.", "Hard to say."], last_known=False),
        ruling(claim(5), ["supports", "denies"], conflicts=["E1, E3"]),
    ]
    with simulated_server(KEY, seed=7) as port:
        async with served(wire, port) as there:
            for place, messages in enumerate(prompts):
                said = await there.complete(messages, DECODING, step_key=f"c/0/turn/{place}")
                here = model(7, KEY).reply(messages, DECODING, f"c/0/turn/{place}")
                assert (said.text, said.usage) == (here.text, here.usage)
        assert read_stats(port)["pictures"] == 0


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"type": "url", "url": "http://127.0.0.1/cat.png"}, "base64 source only"),
        ({"type": "base64", "media_type": "image/bmp", "data": "AAE="}, "media_type"),
        ({"type": "base64", "media_type": "image/png", "data": "A"}, "no base64"),
        ({"type": "base64", "media_type": "image/png", "data": ""}, "must not be empty"),
    ],
)
async def test_a_block_that_is_no_picture_is_refused(source: Any, said: str) -> None:
    asked: Any = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    with simulated_server(None) as port:
        async with AsyncAnthropic(base_url=f"http://127.0.0.1:{port}", api_key="any", max_retries=0) as made:
            with pytest.raises(BadRequestError, match=said):
                await made.messages.create(model="any", max_tokens=9, messages=asked)
        assert read_stats(port)["pictures"] == 0


def read_stats(port: int) -> dict[str, Any]:
    with urlopen(f"http://127.0.0.1:{port}/stats") as response:
        read: dict[str, Any] = json.load(response)
    return read
