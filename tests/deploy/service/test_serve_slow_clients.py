"""Clients that do not read what they asked for, or do not say what they want: none is kept for ever."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from server_client import CASE, SLOW, ServerClient, listening, parsed, served, until

from moot.deploy.runs.open_run import OpenRun
from moot.deploy.service import listener as listening_at
from moot.deploy.service.api import make_api
from moot.deploy.service.sse import MOST_BYTES
from moot.protocols.messages import Event, Verdict

NOTES, LENGTH = 12, 30_000
MAY_ANSWER = asyncio.Event()


class Wordy:
    """A protocol with long events, one of them longer than any chunk."""

    name = "wordy"
    roles = ("agent",)
    needs_logprobs = False

    async def run(self, case: Any, floor: Any) -> Verdict:
        for number in range(NOTES):
            floor.note(Event("word", f"word/{number}", {"said": "x" * (LENGTH if number else 5 * MOST_BYTES)}))
        return Verdict(answer="x", how="said")


@pytest.fixture
async def wordy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServerClient]:
    """A server with a debate `a` of long events, which has ended."""
    monkeypatch.setattr("moot.deploy.service.service.OpenRun", lambda config, **_: OpenRun(config, protocol=Wordy()))
    async with served(tmp_path) as client:
        await client.post("/v1/debates", {"question": "what is said", "id": "a"})
        await client.end("/v1/debates/a")
        yield client


async def follow(client: ServerClient, send: Callable[[bytes], Any], last: str = "") -> None:
    """Ask for the events of the debate `a`; each chunk of the answer is given to `send`."""

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.body":
            await send(message.get("body", b""))

    scope = {"type": "http", "asgi": {"spec_version": "2.3"}, "method": "GET", "path": "/v1/debates/a/events",
             "query_string": b"", "server": ("127.0.0.1", 1),
             "headers": [(b"host", b"localhost"), (b"last-event-id", last.encode())]}  # fmt: skip
    async with asyncio.timeout(5.0):
        await make_api(client.services)(scope, asyncio.Queue().get, sending)


async def test_a_reader_that_never_reads_is_ended_and_its_place_is_free(
    wordy: ServerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.deploy.service.sse.SEND_S", 0.02)
    places: list[int] = []

    async def never(chunk: bytes) -> None:
        places.append(wordy.services._held)
        await asyncio.Event().wait()

    await follow(wordy, never)
    assert (places, wordy.services._held) == ([1], 0)
    assert [task for task in asyncio.all_tasks() if "_Pump" in repr(task)] == []


async def test_a_slow_reader_is_disconnected_at_the_end_of_an_event_and_resumes_from_there(wordy: ServerClient) -> None:
    chunks: list[bytes] = []
    config = wordy.services.config

    async def slowly(chunk: bytes) -> None:
        chunks.append(chunk)
        await asyncio.sleep(0.05)

    wordy.services.config = config.model_copy(update={"stream_s": 0.2})
    await follow(wordy, slowly)
    wordy.services.config = config
    text = b"".join(chunks).decode()
    first = parsed(text)
    assert text.endswith(": come again\n\n")
    assert 0 < len(first) < NOTES
    sizes = list(chunks)
    chunks.clear()

    async def read(chunk: bytes) -> None:
        chunks.append(chunk)

    await follow(wordy, read, first[-1]["id"])
    rest = parsed(b"".join(chunks).decode())
    assert max(map(len, sizes)) <= MOST_BYTES
    said = [len(json.loads(each["data"])["data"]["said"]) for each in [*first, *rest] if each["event"] == "word"]
    assert said == [5 * MOST_BYTES, *[LENGTH] * (NOTES - 1)], "every event is whole, also one longer than a chunk"
    assert [each["id"].rpartition("-")[2] for each in [*first, *rest]] == list(map(str, range(len(first) + len(rest))))
    assert rest[-1]["event"] == "end"


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """An application: answers with so many bytes, after so many seconds, or when `MAY_ANSWER` is set, by the path."""
    what, _, number = scope["path"].strip("/").partition("/")
    if what == "wait":
        await asyncio.sleep(float(number))
    if what == "until":
        await MAY_ANSWER.wait()
    body = b"x" * int(number) if what == "bytes" else b"hello"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def until_ended(reader: asyncio.StreamReader) -> bytes:
    """What is read until the server ends the connection."""
    try:
        async with asyncio.timeout(5.0):
            return await reader.read()
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTT",
     b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nxx"],
    ids=["nothing", "unfinished headers", "unfinished second headers", "unfinished body of what is answered"],
)  # fmt: skip
async def test_a_connection_without_a_request_is_ended_also_while_bytes_drip(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening_at, "IDLE_CHECK_S", 0.15)
    async with listening(answer) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)

        async def drip() -> None:
            while sent:
                writer.write(b"x")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        read = await until_ended(reader)
        dripping.cancel()
        writer.close()
    assert read.count(b"hello") <= 1


async def test_a_request_that_takes_its_time_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_at, "IDLE_CHECK_S", 0.05)
    async with listening(answer) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /wait/0.2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await until_ended(reader)).endswith(b"hello")
        writer.close()


@pytest.mark.parametrize("closing", [b"", b"Connection: close\r\n"])
async def test_a_response_that_nobody_reads_is_aborted(closing: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_at, "IDLE_CHECK_S", 0.1)
    async with listening(answer) as (port, server):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"GET /bytes/30000000 HTTP/1.1\r\nHost: x\r\n" + closing + b"\r\n")
        await until(lambda: len(server.server_state.connections) == 1)
        await until(lambda: not server.server_state.connections)
        client.close()


async def test_what_does_not_end_by_itself_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_at, "ANSWER_S", 1)
    sent: list[int] = []

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            sent.append(1)
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0.01)

    async with listening(endless) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readline()
    before = len(sent)
    await asyncio.sleep(0.1)
    assert len(sent) == before
    writer.close()


async def test_a_client_that_hangs_up_gives_its_place_back(tmp_path: Path) -> None:
    async with served(tmp_path, debates=SLOW) as client:
        body = {**CASE, "id": "one"}
        for method, path, sent in (("POST", "/v1/debates", body), ("GET", "/v1/debates/one", None)):
            asking = asyncio.create_task(client.ask(method, f"{path}?wait_s=60", json=sent))
            await until(lambda: client.services._held == 1)
            asking.cancel()
            await until(lambda: client.services._held == 0)
        counts = (await client.get("/v1/stats")).json["debates"]
        assert (counts["open"] + counts["queued"], counts["cancelled"]) == (1, 0)


async def test_one_connection_too_many_ends_the_one_that_has_waited_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_at, "MAX_CONNECTIONS", 3)
    async with listening(answer) as (port, server):
        busy_reader, busy = await asyncio.open_connection("127.0.0.1", port)
        MAY_ANSWER.clear()
        busy.write(b"GET /until HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        open_: Any = server.server_state.connections
        await until(lambda: any(each.is_responding for each in open_))
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await until_ended(reader)).endswith(b"hello")
        assert await until_ended(idle[0][0]) == b""
        assert not idle[1][0].at_eof()
        MAY_ANSWER.set()
        assert (await until_ended(busy_reader)).endswith(b"hello")
        for each in (busy, writer, idle[0][1], idle[1][1]):
            each.close()
