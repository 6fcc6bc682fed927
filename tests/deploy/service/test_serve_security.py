"""Who may ask, what a request may do, and what an error says: nothing of the server's, and little of the client's."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from server_client import CASE, ServerClient, served

from moot.deploy.service.errors import RequestError
from moot.deploy.service.guard import Guard
from moot.deploy.service.process import run_server
from moot.deploy.service.settings import ServeConfig
from moot.protocols.errors import MissingKey
from moot.protocols.long_texts import MOST_CHARACTERS


async def _answers(client: ServerClient, sent: bytes, quiet_s: float = 0.1) -> list[int]:
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


ODD = """GET //v1/stats HTTP/1.1
GET /healthz/../v1/stats HTTP/1.1
GET /healthz%2f..%2fv1%2fstats HTTP/1.1
GET /v1/stats?/healthz HTTP/1.1
GET http://localhost/healthz/../v1/stats HTTP/1.1
get /v1/stats HTTP/1.1
GET /v1/stats HTTP/1.0
HEAD /v1/stats HTTP/1.1
CONNECT /v1/stats HTTP/1.1
POST /healthz HTTP/1.1
OPTIONS * HTTP/1.1
GET /v1/debates/x/events HTTP/1.1"""


async def test_no_odd_form_of_a_request_is_let_in_without_the_token(tmp_path: Path) -> None:
    heads = ["Authorization:", "Authorization: Bearer", "Authorization: Bearer  ", f"Authorization: Bearer\t{TOKEN}",
             f"Authorization: Bearer wrong\r\nAuthorization: Bearer {TOKEN}", f"Authorization : Bearer {TOKEN}",
             f"X-Forwarded-Authorization: Bearer {TOKEN}", f"Cookie: token={TOKEN}",
             "X-Forwarded-For: 127.0.0.1", f"Authorization: Bearer {TOKEN[:-1]}\u00e9"]  # fmt: skip
    async with served(tmp_path, token=TOKEN) as client:
        for line, head in itertools.product(ODD.splitlines(), heads):
            sent = f"{line}\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n\r\n".encode()
            found = await _answers(client, sent)
            assert len(found) <= 1
            assert all(400 <= status < 500 for status in found), (line, head, found)


@pytest.mark.parametrize(
    "head", ["Content-Length: 4\r\nTransfer-Encoding: chunked", "Content-Length: 0\r\nContent-Length: 44"]
)
async def test_no_second_request_is_read_out_of_a_first_one(head: str, tmp_path: Path) -> None:
    """What lies within a body that one reader may end earlier than another is never answered as a request."""
    known = f"HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    smuggled = f"GET /v1/stats {known}Connection: close\r\n\r\n"
    async with served(tmp_path, token=TOKEN) as client:
        first = f"POST /v1/debates {known}Content-Type: application/json\r\n{head}\r\n\r\n"
        for body in ("0\r\n\r\n", ""):
            found = await _answers(client, (first + body + smuggled).encode())
            assert all(400 <= status < 500 for status in found), found
        whole = first.replace(head, "Content-Length: 0") + smuggled
        assert await _answers(client, whole.encode(), 20.0) == [422, 200], "two requests, one after the other"


TOKEN = "a-long-token-of-the-test"
JSON = {"Content-Type": "application/json"}


async def test_without_the_token_nothing_is_answered_but_the_probes(tmp_path: Path) -> None:
    async with served(tmp_path, token=TOKEN) as client:
        bare = ServerClient(client.base, client.session)
        for method, path in (("POST", "/v1/debates"), ("GET", "/v1/debates/x"), ("GET", "/v1/debates/x/events"),
                             ("DELETE", "/v1/debates/x"), ("GET", "/v1/stats"), ("GET", "/openapi.json"),
                             ("GET", "/nowhere"), ("OPTIONS", "/v1/debates")):  # fmt: skip
            for sent in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN},
                         {"Authorization": "Basic eA=="}, {"Authorization": f"Bearer {TOKEN}x"},
                         {"X-Api-Key": TOKEN}):  # fmt: skip
                answer = await bare.ask(method, path, headers=sent)
                assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
                assert answer.code == "unauthorized"
                assert TOKEN not in answer.text
        for probe in ("/healthz", "/readyz"):
            assert (await bare.get(probe)).status == 200
        assert (await client.post("/v1/debates", CASE)).status == 202
        assert (await bare.get("/v1/stats", headers={"Authorization": f"bearer {TOKEN}"})).status == 200
        away = {"Host": "moot.example", "Origin": "https://moot.example"}
        assert (await client.get("/v1/stats", headers=away)).status == 200


async def test_without_a_token_only_this_machine_and_no_page_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        here = client.base.removeprefix("http://")
        for headers in ({"Host": "evil.example"}, {"Host": f"127.0.0.1.evil.example:{here.rpartition(':')[2]}"},
                        {"Host": "0.0.0.0"}, {"Host": "["}, {"Origin": "https://evil.example"}, {"Origin": "null"},
                        {"Origin": f"http://{here}.evil.example"}, {"Sec-Fetch-Site": "cross-site"},
                        {"Sec-Fetch-Site": "same-site"}):  # fmt: skip
            for method in ("GET", "POST", "DELETE"):
                answer = await client.ask(method, "/v1/debates/x", headers=headers)
                assert answer.status in (403, 400), headers
                assert "Access-Control-Allow-Origin" not in answer.headers
        for headers in ({}, {"Host": "localhost"}, {"Host": "[::1]:80"}, {"Origin": client.base}):
            assert (await client.get("/v1/stats", headers=headers)).status == 200


class _Asked:
    """Response of a guard to one request."""

    def __init__(self, method: str, path: str, server: Any = ("127.0.0.1", 1)) -> None:
        headers = [(b"host", b"localhost")]
        self.scope = {"type": "http", "method": method, "path": path, "headers": headers, "server": server}
        self.sent: list[Any] = []

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def told(self) -> tuple[int, str]:
        """The status, and the word of an error."""
        return self.sent[0]["status"], json.loads(self.sent[1]["body"])["error"]["code"]


async def never(*_: Any) -> Any:
    raise AssertionError("was asked")


@pytest.mark.parametrize("server", [("10.0.0.5", 8000), None])
async def test_a_server_without_a_token_refuses_remote_clients(server: Any) -> None:
    asked = _Asked("GET", "/v1/stats", server)
    await Guard(never, None, 100, 100)(asked.scope, never, asked.send)
    assert asked.told == (403, "no_token")


async def test_no_body_is_read_for_a_probe_without_the_token() -> None:
    asked = _Asked("POST", "/healthz")
    await Guard(never, TOKEN, 100, 100)(asked.scope, never, asked.send)
    assert asked.told == (401, "unauthorized")


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.service.guard._BODY_S", 0.05)
    asked = _Asked("POST", "/v1/debates")
    await Guard(never, None, 100, 100)(asked.scope, asyncio.Queue().get, asked.send)
    assert asked.told == (408, "too_slow")


async def test_bodies_that_come_at_once_are_bounded_together() -> None:
    answering, done = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert len((await receive())["body"]) in (60, 90)
        answering.set()
        await done.wait()
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body"})

    def asked(*chunks: int) -> tuple[_Asked, Any]:
        request = _Asked("POST", "/v1/debates")
        messages = [{"body": b"x" * size, "more_body": place < len(chunks) - 1} for place, size in enumerate(chunks)]
        left = iter([{"type": "http.request", **message} for message in messages])

        async def receive() -> Any:
            return next(left)

        return request, receive

    guard = Guard(app, None, 90, 80)
    first, receive = asked(30, 30)
    holding = asyncio.create_task(guard(first.scope, receive, first.send))
    await answering.wait()
    second, receive = asked(10, 10, 10, 10)  # its last chunk is not even read
    await guard(second.scope, receive, second.send)
    assert second.told == (429, "too_many")
    headers = dict(second.sent[0]["headers"])
    assert (headers[b"retry-after"], headers[b"connection"]) == (b"5", b"close")
    assert await receive()
    done.set()
    await holding
    for sizes in ((30, 30), (90,)):  # one alone may be as long as any
        last, receive = asked(*sizes)
        await guard(last.scope, receive, last.send)
        assert last.sent[0]["status"] == 202


@pytest.mark.parametrize("begun", [True, False])
async def test_a_failure_inside_says_nothing_of_itself_and_adds_no_second_answer(begun: bool) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise RequestError(429, "too late")
        raise RuntimeError("a secret of /the/server")

    asked = _Asked("GET", "/healthz")
    await Guard(app, TOKEN, 100, 100)(asked.scope, asyncio.Queue().get, asked.send)
    if begun:
        assert [message.get("status") for message in asked.sent] == [200]
    else:
        assert asked.told == (500, "internal")
        assert b"secret" not in asked.sent[1]["body"]


MARK = "MARK" * 500
HALF = "x " * (MOST_CHARACTERS // 4)
NAMED = [
    "/etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1:9/x.png",
    base64.b64encode(b"/etc/passwd").decode(),
    "~/x.png",
]
IDS = ["..", "../x", "/etc/passwd", "a b", "a\nb", "a\r\nSet-Cookie: x", "", "é", "x" * 129, "-x", "<b>", "%2e", MARK]
IDS.append(f"shared-{'0a' * 16}")  # as a reply is called that cases share
REFUSED: list[tuple[Any, int]] = [
    ("{", 400), ("", 422), ("[]", 422), ("null", 422), ('"x"', 422), ("[" * 100_000, 400), ("{}", 422),
    ('{"question": "\\ud800"}', 400), ('{"question": 5}', 422), ('{"question": ""}', 422),
    ('{"question": "x", "labels": ["one"]}', 422), ('{"question": "x", "labels": ["a", "A"]}', 422),
    ({"question": "x", MARK: MARK}, 422), ({"question": [MARK]}, 422), ({"question": "x", "labels": [MARK, MARK]}, 422),
    ({**CASE, "documents": [HALF, HALF]}, 422),
    *(({**CASE, "id": bad}, 422) for bad in IDS),
    *(({**CASE, "images": [named]}, 422) for named in NAMED),
    *(({**CASE, extra: "x"}, 422) for extra in ("docs", "model", "out", "gold", "task")),
]  # fmt: skip
"""Bodies and the status of their answer: what is no case, or would name a file, an address or an id that is a path."""


async def test_what_is_no_request_is_refused_in_a_short_line_without_an_echo(tmp_path: Path) -> None:
    async with served(tmp_path, checks={"engine": "inline"}) as client:
        for body, status in REFUSED:
            sent = body if isinstance(body, str) else json.dumps(body)
            answer = await client.ask("POST", "/v1/debates", data=sent, headers=JSON)
            assert answer.status == status, sent[:80]
            assert set(answer.json) == {"error"}
            assert set(answer.json["error"]) == {"code", "message"}
            assert len(answer.text) < 400
            assert not [said for said in ("Traceback", MARK, "root:") if said in answer.text]
            if body == REFUSED[7][0]:
                assert "the body is not valid JSON: unexpected end of hex escape at line 1 column 21" in answer.text
            if HALF in sent:
                assert answer.json["error"]["message"].startswith("documents: ")
                assert f"{MOST_CHARACTERS:,}" in answer.text
        for named in NAMED:
            assert (await client.post("/v1/checks", {"claim": "yes", "images": [named]})).status == 422
        form = await client.ask("POST", "/v1/debates", data=json.dumps(CASE), headers={"Content-Type": "text/plain"})
        assert (form.status, form.code) == (415, "unsupported_media_type")
        paths = ["..%2f..%2fetc%2fpasswd", "%2e%2e", "a%2fb", "a%0d%0ab", "%00", "x" * 129]
        asked = [(method, f"/v1/debates/{path}") for method in ("GET", "DELETE") for path in paths]
        for method, path in (*asked, ("PUT", "/v1/debates"), ("POST", "/v1/debates/x"), ("GET", "/"), ("GET", "/docs")):
            answer = await client.ask(method, path)
            assert answer.status in (404, 405, 422)
            assert set(answer.json) == {"error"}
        assert (await client.post("/v1/checks", {"claim": "yes", "documents": ["/etc/passwd"]})).status == 202
    assert {each.name for each in tmp_path.iterdir()} == {"debates", "checks", "inbox"}


async def test_long_bodies_are_refused_before_they_are_read(tmp_path: Path) -> None:
    async def drip() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 1000

    async with served(tmp_path, max_body_bytes=5000) as client:
        big = await client.post("/v1/debates", {**CASE, "passage": "x" * 6000})
        assert (big.status, big.code) == (413, "too_large")
        dripped = await client.ask("POST", "/v1/debates", data=drip(), headers=JSON)
        assert (dripped.status, dripped.code) == (413, "too_large")
        assert (await client.post("/v1/debates", {**CASE, "passage": "x" * 3000})).status == 202


def test_a_token_is_needed_to_be_open_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOOT_TEST_TOKEN", raising=False)
    named = ServeConfig(out=str(tmp_path), token_env="MOOT_TEST_TOKEN")
    for wrong in (None, "", "short", "with a space in between", "ä" * 20):
        if wrong is not None:
            monkeypatch.setenv("MOOT_TEST_TOKEN", wrong)
        with pytest.raises(MissingKey, match="MOOT_TEST_TOKEN") as error:
            run_server(named, "0.0.0.0", 0)
        assert not wrong or wrong not in str(error.value)
    file = tmp_path / "token"
    with pytest.raises(MissingKey, match="cannot be read"):
        ServeConfig(token_file=str(file)).read_token()
    file.write_text(f"{TOKEN}\n")
    assert ServeConfig(token_file=str(file)).read_token() == TOKEN
