"""Requests that no client library sends: odd ways to be let in, two requests in one, and very many at once."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from served import CASE, Client, served

TOKEN = "a-long-token-of-the-test"


async def _answers(client: Client, sent: bytes, quiet_s: float = 0.1) -> list[int]:
    """The status of every answer to some bytes, until the server hangs up, or has nothing more to say to them."""
    host, _, port = client.base.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    got, more = b"", b" "
    with suppress(TimeoutError):
        while more:
            more = await asyncio.wait_for(reader.read(2**16), quiet_s if got else 10 * quiet_s)
            got += more
    writer.close()
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", got)]


@pytest.mark.parametrize(
    "line",
    [
        "GET //v1/stats HTTP/1.1",
        "GET /healthz/../v1/stats HTTP/1.1",
        "GET /healthz/v1/stats HTTP/1.1",
        "GET /healthz%2f..%2fv1%2fstats HTTP/1.1",
        "GET /v1/stats?/healthz HTTP/1.1",
        "GET /v1/stats#/healthz HTTP/1.1",
        "GET /v1/stats;/healthz HTTP/1.1",
        "GET http://localhost/v1/stats HTTP/1.1",
        "GET http://localhost/healthz/../v1/stats HTTP/1.1",
        "get /v1/stats HTTP/1.1",
        "GET /v1/stats HTTP/1.0",
        "HEAD /v1/stats HTTP/1.1",
        "TRACE /healthz HTTP/1.1",
        "CONNECT /v1/stats HTTP/1.1",
        "POST /healthz HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET /v1/debates/x/events HTTP/1.1",
    ],
)
async def test_no_odd_form_of_a_request_is_let_in_without_the_token(line: str, tmp_path: Path) -> None:
    heads = ["Authorization:", "Authorization: Bearer", "Authorization: Bearer  ", f"Authorization: Bearer\t{TOKEN}",
             f"Authorization: Bearer wrong\r\nAuthorization: Bearer {TOKEN}", f"Authorization : Bearer {TOKEN}",
             f"X-Forwarded-Authorization: Bearer {TOKEN}", f"Cookie: token={TOKEN}",
             "X-Forwarded-For: 127.0.0.1", f"Authorization: Bearer {TOKEN[:-1]}\u00e9"]  # fmt: skip
    async with served(tmp_path, token=TOKEN) as client:
        for head in heads:
            sent = f"{line}\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n\r\n".encode()
            found = await _answers(client, sent)
            assert len(found) <= 1
            assert all(400 <= status < 500 for status in found), (head, found)


SMUGGLED = b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Content-Length: 0\r\nContent-Length: 44",
        "Content-Length: +4",
        "Content-Length: 0x4",
        "Content-Length: -4",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\x0bchunked",
    ],
)
async def test_no_second_request_is_read_out_of_a_first_one(head: str, tmp_path: Path) -> None:
    """What lies within a body that one reader may end earlier than another is never answered as a request."""
    async with served(tmp_path, token=TOKEN) as client:
        first = f"POST /v1/debates HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n\r\n"
        for body in (b"0\r\n\r\n" + SMUGGLED, SMUGGLED):
            found = await _answers(client, first.encode("latin-1") + body)
            assert all(400 <= status < 500 for status in found), found
            authorised = first.replace("\r\n", f"\r\nAuthorization: Bearer {TOKEN}\r\n", 1).encode("latin-1")
            smuggled = SMUGGLED.replace(b"\r\n\r\n", f"\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            assert 200 not in await _answers(client, authorised + body.replace(SMUGGLED, smuggled))
        whole = authorised.replace(head.encode("latin-1"), b"Content-Length: 0")
        assert await _answers(client, whole + smuggled, 20.0) == [422, 200], "two requests, one after the other"


async def test_three_hundred_requests_at_once_are_answered_or_refused(tmp_path: Path) -> None:
    async with served(tmp_path, max_queued=10) as client:
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        async with session:
            many = Client(client.base, session)
            bodies = [{**CASE, "id": f"n{number % 40}"} for number in range(300)]
            answers = await asyncio.gather(*(many.post("/v1/debates", body) for body in bodies))
        assert {each.status for each in answers} <= {200, 202, 429}
        taken = {body["id"] for body, each in zip(bodies, answers, strict=True) if each.status != 429}
        assert len(taken) >= 10
        for case_id in taken:
            assert (await client.end(f"/v1/debates/{case_id}"))["status"] == "done"
        counts = await client.services.of("debates").run.counts()
    assert counts.finished == len(taken)


@pytest.mark.parametrize(("path", "body"), [("debates", CASE), ("judgments", {"reply": "Penguins swim."})])
async def test_no_request_is_called_as_a_reply_that_cases_share(
    path: str, body: dict[str, object], tmp_path: Path
) -> None:
    async with served(tmp_path, judgments={"engine": "inline"}) as client:
        answer = await client.post(f"/v1/{path}", {**body, "id": f"shared-{'0a' * 16}"})
    assert (answer.status, answer.code) == (422, "invalid")
