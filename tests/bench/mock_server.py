"""A lean local server that speaks just enough of the OpenAI chat-completions wire for the benches.

Responses are built once per variant and written as they are, so a request costs 0.01-0.03 ms of CPU. Run it as a
process of its own; it prints `port N` and serves until it is terminated.

    python tests/bench/mock_server.py [--port 0] [--tokens 100]

POST /v1/chat/completions   a debater's reply, or a judge's when the request holds `[[judge]]`; with `"logprobs": true`
                            log-probabilities with as many alternatives as `top_logprobs` says
GET /v1/models              one model
GET /stats                  requests, first_at, cpu_s, inflight, max_inflight, conns
GET /set?latency_ms=&jitter_ms=&hold=
                            how long replies take (latency plus uniform jitter); requests that contain the text `hold`
                            are not answered until the next /set. Zeroes the counters.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zlib import crc32

VARIANTS = 16
_JUDGE = b"[[judge]]"
_LOGPROBS = re.compile(rb'"logprobs"\s*:\s*true')
_TOP = re.compile(rb'"top_logprobs"\s*:\s*(\d+)')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_WORDS = ["the", "passage", "says", "that", "this", "claim", "holds", "because", "evidence", "for", "it", "is", "given"]
_WORDS += ["nothing", "else", "speaks", "against", "what", "was", "asked", "reading", "names", "dates", "or", "numbers"]


def reply_tokens(judge: bool, variant: int, count: int) -> list[str]:
    """The reply's tokens: one JSON object of about `count` tokens; joined they are its text."""
    rng = random.Random(variant)
    if judge:
        support = ("supported", "contradicted")[variant % 2]
        head = ['{"', "support", '":', ' "', support, '",', ' "', "score", '":', " ", "0", ".", str(1 + variant % 9)]
        head += [",", ' "', "rationale", '":', ' "']
        tail = ['."', "}"]
    else:
        head = ['{"', "answer", '":', ' "', ("Yes", "No")[variant % 2], '",', ' "', "reasoning", '":', ' "']
        tail = ['.",', ' "', "confidence", '":', " ", "0", ".", str(5 + variant % 5), "}"]
    words = [rng.choice(_WORDS) for _ in range(max(1, count - len(head) - len(tail)))]
    return [*head, words[0], *(f" {word}" for word in words[1:]), *tail]


def token_logprobs(tokens: list[str], alternatives: int, seed: int) -> list[dict[str, Any]]:
    """`logprobs.content` as the wire has it, `bytes` included."""
    rng = random.Random(seed)

    def entry(token: str, logprob: float) -> dict[str, Any]:
        return {"token": token, "logprob": logprob, "bytes": list(token.encode())}

    content = []
    for token in tokens:
        logprob = -rng.random() * 0.5
        first = entry(token, logprob)
        others = {"Yes": ["No"], "No": ["Yes"]}.get(token, [])
        listed = [first]
        for position in range(1, alternatives):
            logprob -= rng.random() * 2
            other = others[position - 1] if position <= len(others) else f" {rng.choice(_WORDS)}"
            listed.append(entry(other, logprob))
        content.append({**first, "top_logprobs": listed[:alternatives]})
    return content


def http(body: bytes, status: bytes = b"200 OK") -> bytes:
    """A whole HTTP response."""
    head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
    return head + body


def completion(judge: bool, variant: int, alternatives: int | None, count: int) -> bytes:
    """The response with one chat completion."""
    tokens = reply_tokens(judge, variant, count)
    logprobs = None if alternatives is None else {"content": token_logprobs(tokens, alternatives, variant)}
    message = {"role": "assistant", "content": "".join(tokens), "refusal": None}
    body = {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 1790000000,
        "model": "mock",
        "choices": [{"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 500, "completion_tokens": len(tokens), "total_tokens": 500 + len(tokens)},
    }
    return http(json.dumps(body, separators=(",", ":")).encode())


class MockLLMServer:
    """Settings, counters and the cache of responses; shared by all connections."""

    def __init__(self, tokens: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.latency_s = self.jitter_s = 0.0
        self.hold = b""
        self._held: list[Callable[[], None]] = []
        self.requests = self.inflight = self.max_inflight = self.conns = 0
        self.first_at = 0.0
        self._tokens = tokens
        self._built: dict[tuple[bool, int, int | None], bytes] = {}
        for variant in range(VARIANTS):
            for judge in (False, True):
                self._response(judge, variant, None)
                self._response(judge, variant, 5)

    def answer(self, body: bytes) -> bytes:
        """The response to a completion request: the same body always gets the same one."""
        alternatives = None
        if _LOGPROBS.search(body):
            top = _TOP.search(body)
            alternatives = min(int(top[1]), 20) if top else 0
        return self._response(_JUDGE in body, crc32(body) % VARIANTS, alternatives)

    def _response(self, judge: bool, variant: int, alternatives: int | None) -> bytes:
        key = (judge, variant, alternatives)
        known = self._built.get(key)
        if known is None:
            known = self._built[key] = completion(judge, variant, alternatives, self._tokens)
        return known

    def answer_later(self, body: bytes, reply: Callable[[bytes], None]) -> bool:
        """Have `reply` called with the response in due time; False when that is at once, and the caller shall."""
        held = bool(self.hold) and self.hold in body
        if not (held or self.latency_s or self.jitter_s):
            return False
        self.inflight += 1
        self.max_inflight = max(self.max_inflight, self.inflight)
        if held:
            self._held.append(partial(reply, self.answer(body)))
        else:
            self.loop.call_later(self.latency_s + random.random() * self.jitter_s, reply, self.answer(body))
        return True

    def control(self, target: str) -> bytes:
        """The response to a GET."""
        url = urlsplit(target)
        if url.path == "/v1/models":
            return http(b'{"object":"list","data":[{"id":"mock","object":"model","created":1,"owned_by":"bench"}]}')
        if url.path == "/set":
            given = parse_qs(url.query)
            self.latency_s = float(given.get("latency_ms", ["0"])[0]) / 1000
            self.jitter_s = float(given.get("jitter_ms", ["0"])[0]) / 1000
            self.hold = given.get("hold", [""])[0].encode()
            held, self._held = self._held, []
            for answer in held:
                answer()
            self.requests, self.max_inflight, self.first_at = 0, self.inflight, 0.0
        elif url.path != "/stats":
            return http(b'{"error":{"message":"no such path"}}', b"404 Not Found")
        used = resource.getrusage(resource.RUSAGE_SELF)
        stats = {
            "requests": self.requests,
            "first_at": self.first_at,
            "cpu_s": used.ru_utime + used.ru_stime,
            "inflight": self.inflight,
            "max_inflight": self.max_inflight,
            "conns": self.conns,
        }
        return http(json.dumps(stats).encode())


class MockConnection(asyncio.Protocol):
    """One client connection: requests with Content-Length, one after the other."""

    __slots__ = ("_buffer", "_server", "_transport")

    def __init__(self, server: MockLLMServer) -> None:
        self._server = server
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport: Any = transport
        self._server.conns += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._server.conns -= 1

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._buffer = buffer = self._buffer + data if self._buffer else data
        while buffer:
            head_end = buffer.find(b"\r\n\r\n")
            if head_end < 0:
                return
            length = _LENGTH.search(buffer, 0, head_end + 2)
            end = head_end + 4 + (int(length[1]) if length else 0)
            if len(buffer) < end:
                return
            head, body = buffer[:head_end], buffer[head_end + 4 : end]
            self._buffer = buffer = buffer[end:]
            self._handle(head, body)

    def _handle(self, head: bytes, body: bytes) -> None:
        server = self._server
        if not head.startswith(b"POST /v1/chat/completions"):
            self._transport.write(server.control(head.split(b" ", 2)[1].decode()))
            return
        if not server.requests:
            server.first_at = time.time()
        server.requests += 1
        if not server.answer_later(body, self._later):
            self._transport.write(server.answer(body))

    def _later(self, response: bytes) -> None:
        self._server.inflight -= 1
        if not self._transport.is_closing():
            self._transport.write(response)


async def serve(port: int, tokens: int) -> None:
    """Serve until cancelled."""
    server = MockLLMServer(tokens)
    listening = await server.loop.create_server(lambda: MockConnection(server), "127.0.0.1", port, backlog=8192)
    print(f"port {listening.sockets[0].getsockname()[1]}", flush=True)
    await listening.serve_forever()


def main() -> None:
    """Run the server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=100, help="tokens per reply")
    given = parser.parse_args()
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(given.port, given.tokens))
    else:
        uvloop.run(serve(given.port, given.tokens))


if __name__ == "__main__":
    main()
