"""Embeddings over HTTP: the wire, what a server can do wrong, keys, and runs whose encoder is `moot simulate`."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port
from openai_server import KEY, answers, served_model, simulated_server, stats_of
from small_runs import FinishedRun, make_spec, run_debates, same_model_roles

from moot.actors.debate.context_factory import build_debate_context
from moot.actors.debate.floor import CaseFloor
from moot.actors.encoders.endpoint import decode_reply, encode_request
from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.encoders.interface import Encoder
from moot.actors.encoders.resolve import make_encoder
from moot.actors.models.interface import ModelError
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.recovery import History, vector_key
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case, LabelledCase
from moot.protocols.errors import EncoderFailed, MissingKey, ModelUnavailable
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict

pytestmark = pytest.mark.usefixtures("vendor_key")

QUICK = RetryPolicy(max_attempts=3, base_s=0.001, cap_s=0.001)
TEXTS = ["Can penguins fly?", "No.", "été 東京"]
ROWS = np.array([[3.0, 4.0], [0.0, 1.0], [-1.0, 0.0]], np.float32)
UNIT = np.array([[0.6, 0.8], [0.0, 1.0], [-1.0, 0.0]], np.float32)


def body_of(rows: np.ndarray[Any, Any], *, base64: bool = True) -> dict[str, Any]:
    vectors = [b64encode(row.astype("<f4").tobytes()).decode() if base64 else row.tolist() for row in rows]
    return {"object": "list", "data": [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]}


def made_at(url: str) -> Encoder:
    return make_encoder(f"{url}#m", QUICK, api_key_env="MOOT_TEST_KEY")


def read(body: object, count: int = 3) -> np.ndarray[Any, Any]:
    return decode_reply(body if isinstance(body, bytes) else json.dumps(body).encode(), count, key=KEY)


@pytest.mark.parametrize("base64", [True, False])
def test_vectors_are_read_in_the_order_of_the_texts_and_made_unit_long(base64: bool) -> None:
    body = body_of(ROWS, base64=base64)
    np.testing.assert_allclose(read(body), UNIT, atol=1e-7)
    assert read(body).dtype == np.float32
    if not base64:
        np.testing.assert_allclose(read(body_of(ROWS.astype(np.float64) * 1e100, base64=False)), UNIT, atol=1e-7)
    body["data"] = body["data"][::-1]
    np.testing.assert_allclose(read(body), UNIT, atol=1e-7)
    for item in body["data"]:
        del item["index"]
    np.testing.assert_allclose(read(body), UNIT[::-1], atol=1e-7)


def test_the_request_asks_for_base64_and_sends_no_empty_text() -> None:
    sent = json.loads(encode_request("m", ["a", "", "é"]))
    assert sent == {"model": "m", "input": ["a", " ", "é"], "encoding_format": "base64"}
    with pytest.raises(ModelError, match="surrogate"):
        encode_request("m", ["\ud800"])


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"<html>", "server", "the reply is no list of embeddings"),
        (b'{"data": [{"embedding": "???"}]}', "server", "the reply is no list of embeddings"),
        (b'{"data": [{"embedding": [NaN]}]}', "server", "the reply is no list of embeddings"),
        (b"[" * 100_000, "server", "the reply is no list of embeddings"),
        ({}, "server", "the reply holds no embeddings"),
        ({"error": {"message": f"slow down, {KEY}", "code": 429}}, "rate_limited", "error 429: slow down, [secret]"),
        (body_of(ROWS[:2]), "unparsable", "2 vectors for 3 texts"),
        ({"data": [{"index": 0, "embedding": [1.0]}] * 3}, "unparsable", "their numbers are not those of the texts"),
        ({"data": [{"embedding": []}] * 3}, "unparsable", "a vector is empty"),
        ({"data": [{"embedding": [0] * 2**17}] * 3}, "unparsable", "more than 65,536"),
        ({"data": [{"embedding": "AAAA"}] * 3}, "unparsable", "cannot be used"),
        ({"data": [{"embedding": [1.0]}, {"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]}, "unparsable", "same shape"),
        (body_of(ROWS * 0), "unparsable", "a vector is zero or not finite"),
        (body_of(ROWS * np.float32("nan")), "unparsable", "a vector is zero or not finite"),
        (body_of(ROWS.astype(np.float64) * 1e300, base64=False), "unparsable", "a vector is zero or not finite"),
    ],
)
def test_what_a_reply_can_hold(body: object, kind: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(body)
    assert caught.value.kind == kind
    assert message in caught.value.message
    assert KEY not in repr(caught.value)
    assert "\n" not in str(caught.value)


async def test_vectors_larger_than_a_models_are_not_received() -> None:
    count = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        if count == 1:
            return web.json_response(body_of(ROWS[:1]))
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"data":[{"embedding":[')
        while True:
            await response.write(b"0.1," * 2**14)

    async with served_model(made_at, handler) as encoder:
        await encoder.encode(TEXTS[:1])
        with pytest.raises(EncoderFailed, match="larger than 1 MiB"):
            await encoder.encode(TEXTS[1:2])
    assert count == 2, "it is not retried"


async def test_one_request_as_sent() -> None:
    seen: list[web.Request] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request)
        sent = await request.json()
        return web.json_response(body_of(np.ones((len(sent["input"]), 4))))

    async with served_model(made_at, handler) as made:
        assert made.dimension is None
        found = await asyncio.gather(*(made.encode([text]) for text in TEXTS))
        assert made.dimension == 4
        await made.encode(["more"])
    np.testing.assert_allclose(np.vstack(found), 0.5)
    assert [request.path for request in seen] == ["/v1/embeddings"] * 2
    assert seen[0].headers["Authorization"] == f"Bearer {KEY}"
    steps = [request.headers["X-Client-Request-Id"] for request in seen]
    assert all(step.startswith("embeddings/") for step in steps)
    assert steps[0] != steps[1]


@pytest.mark.parametrize(
    ("status", "kind", "attempts"),
    [(401, "refused", 1), (400, "request", 1), (404, "request", 1), (429, "rate_limited", 15), (503, "server", 3)],
)
async def test_an_error_status_has_its_kind_and_is_tried_again_where_that_helps(
    status: int, kind: str, attempts: int
) -> None:
    calls = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal calls
        calls += 1
        return web.json_response({"error": {"message": f"no: {KEY}"}}, status=status)

    async with served_model(made_at, handler) as made:
        with pytest.raises(EncoderFailed) as caught:
            await made.encode(["one"])
        assert (caught.value.kind, calls) == (kind, attempts)
        assert str(caught.value) == f"encoder {made.name}: {kind}: HTTP {status}: no: [secret]"
        with pytest.raises(ModelUnavailable, match=f"HTTP {status}"):
            await made.check()


async def test_a_server_that_gives_vectors_of_another_size_is_not_believed() -> None:
    sizes = iter([4, 4, 5])

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(body_of(np.ones((1, next(sizes)))))

    async with served_model(made_at, handler) as made:
        await made.encode(["a"])
        await made.encode(["b"])
        with pytest.raises(EncoderFailed, match="vectors of 5 numbers"):
            await made.encode(["c"])


async def test_nobody_there_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = make_encoder(f"http://127.0.0.1:{unused_port()}/v1#m", QUICK)
    with pytest.raises(EncoderFailed, match="http://127"):
        await nowhere.encode(["a"])
    with pytest.raises(ModelUnavailable, match="cannot reach"):
        await nowhere.check()
    await nowhere.close()

    monkeypatch.delenv("MOOT_TEST_KEY")
    async with served_model(made_at, answers(200, body_of(ROWS[:1]))) as made:
        with pytest.raises(MissingKey, match="MOOT_TEST_KEY"):
            await made.check()
        with pytest.raises(EncoderFailed, match="MOOT_TEST_KEY"):
            await made.encode(["a"])


async def test_openai_by_name_goes_where_its_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with simulated_server(None, token_env="MOOT_TEST_KEY") as port:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1/")
        made = make_encoder("openai/text-embedding-3-small", QUICK)
        await made.check()
        np.testing.assert_allclose(await made.encode(TEXTS), HashedNgramEncoder().rows(TEXTS), atol=1e-6)
        await made.close()
    monkeypatch.delenv("OPENAI_API_KEY")
    made = make_encoder("openai/text-embedding-3-small", QUICK)
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        await made.check()


class Embeds(DebateProtocol):
    """Embeds the case's words; nothing is asked."""

    roles = ("agent",)
    name = "embeds"

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        vectors = await floor.embed([case.question, case.passage, "the same for all"])
        return Verdict(answer=None, how="done", payload={"d": [float(x) for x in vectors[:, 0]]})


async def embedded(folder: Path, port: int, cases: int, **changes: Any) -> FinishedRun:
    """A run whose cases have two texts of their own and a third that all share."""
    each = [Case(id=f"c{i}", question=f"question {i}?", passage=f"passage {i}") for i in range(cases)]
    labelled = [LabelledCase(case, i) for i, case in enumerate(each)]
    encoder = f"http://127.0.0.1:{port}/v1#m"
    return await run_debates(
        "inline", folder, Embeds(), labelled, same_model_roles("simulated"), encoder=encoder, **changes
    )


def test_texts_of_many_debates_leave_in_few_requests(tmp_path: Path) -> None:
    with simulated_server(None, latency_ms=20) as port:
        held = asyncio.run(embedded(tmp_path / "run", port, 40))
        served = stats_of(port)
    assert not any(row["failed"] for row in held.rows("verdicts"))
    assert len(held.rows("embeddings")) == 3 * 40
    assert served["embedded_texts"] < 2 * 40 + 20, "what all share is sent once per batch that wants it"
    assert served["embedding_calls"] <= 10


def test_a_failing_encoder_fails_cases_not_the_run(tmp_path: Path) -> None:
    with simulated_server(None, fail_rate=1.0) as port:
        rows = asyncio.run(embedded(tmp_path / "run", port, 5)).rows("verdicts")
    assert [row["failure"] for row in rows] == ["encoder_failed"] * 5
    said = "server: HTTP 500: the server failed on purpose (fail rate)"
    assert rows[0]["error"] == f"encoder http://127.0.0.1:{port}/v1#m: {said}"
    with simulated_server(None, port=port):
        again = asyncio.run(embedded(tmp_path / "run", port, 5, retry_failed=True))
    assert [(row["attempt"], row["failure"]) for row in again.rows("verdicts")[:2]] == [(0, "encoder_failed"), (1, "")]


async def test_vectors_that_do_not_fit_the_record_fail_the_case(tmp_path: Path) -> None:
    """Another model under the same name: its vectors are of another size than those that are read back."""
    no_scribe = cast("Any", SimpleNamespace(put_vectors=lambda *row: None))
    context = build_debate_context(make_spec(tmp_path, same_model_roles("simulated")), cast("Any", None), no_scribe)
    text_hash = blake2b(b"recorded", digest_size=16).hexdigest()
    recorded = {vector_key(context.encoder.name, text_hash): np.ones(4, np.float32).tobytes()}
    floor = CaseFloor(Case(id="c", question="?"), 0, context, History(vectors=recorded))
    np.testing.assert_array_equal(await floor.embed(["recorded"]), np.ones((1, 4)))
    with pytest.raises(EncoderFailed, match="size"):
        await floor.embed(["recorded", "new"])
