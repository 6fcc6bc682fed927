"""A response that is too large ends the call, whatever the server calls it, and is not asked for again."""

from __future__ import annotations

import gzip
import json
import resource

import pytest
from aiohttp import web
from openai_server import (
    DECODING,
    KEY,
    MESSAGES,
    Handler,
    MakeModel,
    MakeVendor,
    answers,
    compatible,
    completion,
    served,
)

from moot.actors.models import lean_http
from moot.actors.models.interface import ModelError
from moot.actors.models.openai_errors import error_from_response, plain
from moot.actors.models.openai_wire import decode_reply
from moot.protocols.errors import ModelUnavailable
from moot.protocols.messages import Decoding

LARGE = 8 * 2**20


pytestmark = pytest.mark.usefixtures("certificates_read_once", "vendor_key")


@pytest.fixture(autouse=True)
def _low_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean_http, "MOST_BYTES", 2**20)


def sends(body: bytes, status: int, **headers: str) -> Handler:
    """Answers with a body in pieces, of a length that it does not say."""

    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(status=status, headers=headers)
        await response.prepare(request)
        for at in range(0, len(body), 2**16):
            await response.write(body[at : at + 2**16])
        return response

    return handler


BODIES = {
    "a large body": sends(b" " * LARGE, 200),
    "a large error": sends(b" " * LARGE, 500),
    "a gzip bomb": sends(gzip.compress(b" " * 64 * LARGE), 200, **{"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("what", BODIES)
async def test_a_reply_larger_than_the_bound_is_unusable(what: str, vendor: MakeVendor) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with served(vendor, BODIES[what]) as model:
        with pytest.raises(ModelError, match="larger than 1 MiB") as caught:
            await model.complete(MESSAGES, DECODING, step_key="k")
    assert caught.value.kind == "unparsable"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024  # KiB, of a bomb of 512 MiB


@pytest.mark.parametrize("line", [b"data: " + b"x" * LARGE, b"data: {}\n\n" * (LARGE // 10)], ids=["line", "events"])
async def test_a_stream_without_end_is_unusable(line: bytes, make: MakeModel) -> None:
    async with served(make, sends(line, 200, **{"Content-Type": "text/event-stream"})) as model:
        with pytest.raises(ModelError, match="larger than 1 MiB"):
            async for _ in model.stream(MESSAGES, DECODING, step_key="k"):
                pass


async def test_the_list_of_models_is_bounded_too() -> None:
    async with served(compatible, sends(b" " * LARGE, 200)) as model:
        with pytest.raises(ModelUnavailable, match="larger than 1 MiB"):
            await model.check()


def test_a_long_message_is_cut_before_it_is_read_and_not_through_a_key() -> None:
    key = "k" * 40
    for blanks in range(64 * 300 - 60, 64 * 300 + 5):
        assert "kk" not in plain(f"said:{' ' * blanks}{key} {'x' * 9000}", key)


def test_no_part_of_a_key_stays_of_an_error_that_is_no_json_or_of_a_long_key() -> None:
    """Wherever the error is cut, whatever the key is as long as; blanks do not count for what is shown."""
    key, token = "Zq9x1Y2w" * 5, "eyJaB3xQ" * 400
    for blanks in (*range(2_350, 2_400), *range(18_900, 19_300, 20), 2**18 - 20):
        assert key[:6] not in str(error_from_response(500, {}, b" " * blanks + key.encode() + b" tail", key=key))
    for blanks in range(15_000, 18_000, 250):
        body = json.dumps({"error": {"message": " " * blanks + token + "z" * 99_000}}).encode()
        assert token[:6] not in str(error_from_response(500, {}, body, key=token))


def _escaped(key: str) -> str:
    return "".join(f"\\u{ord(char):04x}" if number % 3 else char for number, char in enumerate(key))


@pytest.mark.parametrize(
    ("key", "written"),
    [
        (KEY, _escaped(KEY)),
        ("ab/cd/" * 4, r"ab\/cd\/" * 4),
        ('ab"cd\\' * 4, r"ab\"cd\\" * 4),
        ("ab/c\\d" * 4, r"ab\/c\\\u0064" * 4),
    ],
)
@pytest.mark.parametrize("place", ["alternative", "finish_reason"])
def test_a_key_that_json_writes_another_way_is_not_recorded(key: str, written: str, place: str) -> None:
    assert json.loads(f'"{written}"') == key
    alternative = [{"token": "THERE" if place == "alternative" else "x", "logprob": -1.0}]
    reply = completion("No.", logprobs={"content": [{"token": "No.", "logprob": -0.1, "top_logprobs": alternative}]})
    if place == "finish_reason":
        reply["choices"][0]["finish_reason"] = "THERE"
    sent = json.dumps(reply)
    with pytest.raises(ModelError, match="holds the API key"):
        decode_reply(sent.replace("THERE", written).encode(), Decoding(top_logprobs=1), key=key)
    assert decode_reply(sent.replace("THERE", "another").encode(), Decoding(top_logprobs=1), key=key).text == "No."


async def test_a_reply_that_holds_the_key_is_not_recorded(make: MakeModel) -> None:
    for text in (f"your key is {KEY}", KEY):
        async with served(make, answers(200, completion(text))) as model:
            with pytest.raises(ModelError, match="holds the API key") as caught:
                await model.complete(MESSAGES, DECODING, step_key="k")
        assert KEY not in str(caught.value)


async def test_a_stream_that_spells_the_key_in_pieces_is_not_recorded(make: MakeModel) -> None:
    pieces = [{"choices": [{"delta": {"content": piece}}]} for piece in ("it is ", KEY[:3], KEY[3:5], KEY[5:], ".")]
    body = b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in pieces)
    async with served(make, sends(body, 200, **{"Content-Type": "text/event-stream"})) as model:
        with pytest.raises(ModelError, match="holds the API key"):
            async for _ in model.stream(MESSAGES, DECODING, step_key="k"):
                pass
