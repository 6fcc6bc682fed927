"""All wires as data: bodies that are no reply, statuses and headers, and keys that nobody may see."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic_wire import message
from hypothesis import given
from hypothesis import strategies as st
from openai_server import KEY, completion, response, token
from wire_checks import ASKED, LIMITS, WIRES, check_error, incomplete, read

from moot.actors.models import anthropic_wire, openai_errors
from moot.actors.models.interface import ModelError, RateHeaders
from moot.actors.models.openai_errors import plain, retry_after
from moot.actors.models.openai_wire import decode_reply
from moot.actors.models.rate_headers import anthropic_rate_headers, rate_headers
from moot.actors.models.responses_wire import decode_response
from moot.actors.telemetry.redaction import redact

# What is no reply: the server took the request, so it may bill it


def failed(code: str | None, text: str = "on purpose") -> dict[str, Any]:
    return response(status="failed", error={"code": code, "message": text}, output=None)


def typed(kind: str, text: str = "no", **fields: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": text, **fields}, "request_id": "req_1"}


ANYWHERE: list[object] = [{}, [], b"", b'{"choices": [{"mess', b"<html>gateway</html>", b"\xff\xfe"]
ANYWHERE += [{"error": "overloaded"}, {"message": "a gateway's own"}]
UNUSABLE = [
    *((wire, body, "server") for wire in WIRES for body in ANYWHERE),
    *((wire, {"error": {"message": KEY, "code": 429}}, "rate_limited") for wire in ("chat", "responses")),
    ("chat", {"choices": []}, "server"),
    ("chat", {"choices": "none"}, "server"),
    ("chat", completion("", finish_reason="content_filter"), "content_filter"),
    ("chat", completion("Penguins", finish_reason="content_filter"), "content_filter"),
    ("chat", {"choices": [{"message": {"content": None, "refusal": f"I will not, {KEY}."}}]}, "refused"),
    ("responses", response({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}), "refused"),
    ("responses", incomplete("content_filter"), "content_filter"),
    ("responses", failed("server_error"), "server"),
    ("responses", failed("rate_limit_exceeded"), "rate_limited"),
    ("responses", failed("invalid_prompt"), "request"),
    ("responses", failed("context_length_exceeded"), "context_length"),
    ("responses", failed("image_content_policy_violation"), "content_filter"),
    ("responses", failed("bio_policy", ""), "content_filter"),
    ("responses", failed("what nobody knows"), "server"),
    ("responses", response("Yes", status="queued"), "server"),
    ("responses", {"status": "completed"}, "server"),
    ("anthropic", typed("overloaded_error", f"echo {KEY}"), "server"),
    ("anthropic", typed("rate_limit_error"), "rate_limited"),
    ("anthropic", {"content": None}, "server"),
    ("anthropic", {"content": "text"}, "server"),
    ("anthropic", {"content": [{"text": "no type"}]}, "server"),
    ("anthropic", message("", "refusal"), "refused"),
    ("anthropic", message("half a", "refusal", stop_details={"explanation": f"No {KEY}."}), "refused"),
]


@pytest.mark.parametrize(("wire", "body", "kind"), UNUSABLE)
def test_what_is_no_reply_is_a_failure_that_may_be_billed(wire: str, body: object, kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(wire, body)
    check_error(caught.value)
    assert (caught.value.kind, caught.value.limits) == (kind, LIMITS)
    assert KEY not in str(caught.value) + repr(caught.value) + repr(caught.value.__cause__)


# A status that says no


def error(text: str, code: object = None) -> dict[str, Any]:
    return {"error": {"message": text, "code": code}}


STATUS: dict[str, list[tuple[int, object, str]]] = {
    "openai": [
        (400, error("bad"), "request"),
        (400, error("too long", "context_length_exceeded"), "context_length"),
        (400, error("This model's maximum context length is 8 tokens", 400), "context_length"),
        (400, error("no", "content_filter"), "content_filter"),
        (400, b"", "request"),
        (400, [error("in a list", "context_length_exceeded")], "context_length"),
        (401, error(f"Incorrect API key provided: {KEY}"), "refused"),
        (403, error("no"), "refused"),
        (404, error("no such model"), "request"),
        (408, error("slow"), "server"),
        (409, error("locked"), "server"),
        (422, error("no"), "request"),
        (429, error("slow down"), "rate_limited"),
        (429, error("pay first", "insufficient_quota"), "refused"),
        (500, error("oops"), "server"),
        (502, b"<html>bad\x1b[31m gateway</html>", "server"),
        (503, error("loading"), "server"),
    ],
    "anthropic": [
        (400, typed("invalid_request_error", "max_tokens: must be at least 1"), "request"),
        (400, typed("invalid_request_error", "prompt is too long: 208310 > 200000 maximum"), "context_length"),
        (400, typed("invalid_request_error", "input and `max_tokens` exceed context limit"), "context_length"),
        (401, typed("authentication_error", f"invalid x-api-key {KEY}"), "refused"),
        (402, typed("billing_error"), "refused"),
        (403, typed("permission_error"), "refused"),
        (404, typed("not_found_error"), "request"),
        (408, typed("timeout_error"), "server"),
        (409, typed("conflict_error"), "server"),
        (413, typed("request_too_large"), "request"),
        (422, typed("invalid_request_error"), "request"),
        (429, typed("rate_limit_error"), "rate_limited"),
        (429, typed("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}), "refused"),
        (429, typed("rate_limit_error", details={"error_code": "contract_spend_limit_reached"}), "refused"),
        (500, typed("api_error"), "server"),
        (504, typed("timeout_error"), "server"),
        (529, typed("overloaded_error"), "server"),
    ],
}
READ = {"openai": openai_errors.error_from_response, "anthropic": anthropic_wire.error_from_response}


@pytest.mark.parametrize(("vendor", "row"), [(vendor, row) for vendor, rows in STATUS.items() for row in rows])
def test_status(vendor: str, row: tuple[int, object, str]) -> None:
    status, body, kind = row
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    failure = READ[vendor](status, {"retry-after": "3"}, raw, key=KEY)
    assert (failure.kind, failure.retry_after_s) == (kind, 3.0 if kind in ("server", "rate_limited") else None)
    assert failure.may_be_billed is (vendor == "anthropic" and status in (408, 504))
    assert failure.message.startswith(f"HTTP {status}")
    assert failure.message.isprintable()
    assert KEY not in repr(failure)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "slow", "code": 7}, "message": "other"}, "slow"),
        ({"error": {"code": 7}, "message": "slow"}, "slow"),
        ({"error": {"message": None}, "detail": "slow"}, "slow"),
        ({"error": {"message": ["slow", "down"]}}, '["slow","down"]'),
        ({"error": True, "message": "slow"}, "slow"),
        ({"error": "Bad Request", "message": "slow"}, "Bad Request: slow"),
        ({"error": ["slow"]}, "slow"),
        ({"detail": [{"msg": "slow"}]}, '[{"msg":"slow"}]'),
        ([{"error": {"message": "slow"}}], "slow"),
        ("slow", "slow"),
    ],
)
def test_the_words_of_an_error_are_kept(body: Any, said: str) -> None:
    failure = openai_errors.error_from_response(422, {}, json.dumps(body).encode())
    assert failure.message == f"HTTP 422: {said}"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 +9999999"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers, now=10.0) == expected


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, None),
        ({"other-things": "5", "reset-requests": "2026-10-21T07:28:12Z"}, None),
        ({"limit-requests": "60"}, RateHeaders(requests_limit=60)),
        ({"remaining-requests": " 0 ", "limit-requests": "-1", "limit-tokens": "1e9"}, RateHeaders(requests_left=0)),
        ({"remaining-tokens": "٣", "limit-tokens": "9" * 30}, None),
        (
            {"limit-requests": "50", "limit-tokens": "9", "remaining-requests": "0", "remaining-tokens": "8"},
            RateHeaders(0, 50, 8, 9),
        ),
    ],
)
def test_rate_headers(stated: dict[str, str], expected: RateHeaders | None) -> None:
    raw = [(f"X-RateLimit-{name}".encode(), value.encode()) for name, value in stated.items()]
    assert rate_headers([(b"content-type", b"x"), *raw]) == expected
    turned = {"-".join(reversed(name.split("-"))): value for name, value in stated.items()}
    theirs = {f"anthropic-ratelimit-{name}": value for name, value in turned.items()}
    assert anthropic_rate_headers({"retry-after": "3", **theirs}) == expected


@given(st.lists(st.tuples(st.binary(max_size=9).map(lambda end: b"x-ratelimit-" + end), st.binary(max_size=9))))
def test_any_headers_are_read(raw: list[tuple[bytes, bytes]]) -> None:
    found = rate_headers(raw)
    assert found is None or isinstance(found, RateHeaders)


# Keys


def test_secrets_in_messages() -> None:
    said = "Bearer abc.def and sk-proj_0123456789 and https://me:pw@host/ and my own key hunter2hunter2"
    shown = redact(said, "hunter2hunter2")
    for secret in ("abc.def", "sk-proj", "me:pw", "hunter2"):
        assert secret not in shown


@pytest.mark.parametrize("part", ["//a:", "https://a", "https://", "//a:1", "a:/", "/", "bearer "])
def test_secrets_in_a_hostile_message_take_linear_time(part: str) -> None:
    said = part * 2**18
    assert redact(f"{said} https://me:pw@host/").endswith(" https://[secret]@host/"), "quadratic time would be minutes"


def test_a_long_message_is_cut_before_it_is_read_and_not_through_a_key() -> None:
    key = "k" * 40
    for blanks in range(64 * 300 - 60, 64 * 300 + 5):
        assert "kk" not in plain(f"said:{' ' * blanks}{key} {'x' * 9000}", key)


def test_no_part_of_a_key_stays_of_an_error_that_is_no_json_or_of_a_long_key() -> None:
    """Wherever the error is cut, whatever the key is as long as; blanks do not count for what is shown."""
    key, other = "Zq9x1Y2w" * 5, "eyJaB3xQ" * 400
    for blanks in (*range(2_350, 2_400), *range(18_900, 19_300, 20), 2**18 - 20):
        body = b" " * blanks + key.encode() + b" tail"
        assert key[:6] not in str(openai_errors.error_from_response(500, {}, body, key=key))
    for blanks in range(15_000, 18_000, 250):
        body = json.dumps(error(" " * blanks + other + "z" * 99_000)).encode()
        assert other[:6] not in str(openai_errors.error_from_response(500, {}, body, key=other))


def _escaped(key: str) -> str:
    return "".join(f"\\u{ord(char):04x}" if number % 3 else char for number, char in enumerate(key))


@pytest.mark.parametrize(
    ("key", "written"),
    [
        (KEY, KEY),
        (KEY, _escaped(KEY)),
        ("ab/cd/" * 4, r"ab\/cd\/" * 4),
        ('ab"cd\\' * 4, r"ab\"cd\\" * 4),
        ("ab/c\\d" * 4, r"ab\/c\\\u0064" * 4),
    ],
)
@pytest.mark.parametrize("place", ["alternative", "finish_reason", "reasoning"])
def test_a_key_is_not_recorded_however_json_writes_it(key: str, written: str, place: str) -> None:
    assert json.loads(f'"{written}"') == key
    word = {name: "THERE" if name == place else "x" for name in ("alternative", "finish_reason", "reasoning")}
    tokens = [token("No.", -0.1, (word["alternative"], -1.0))]
    reply = completion("No.", finish_reason=word["finish_reason"], logprobs={"content": tokens})
    reply["choices"][0]["message"]["reasoning"] = word["reasoning"]
    thought = {"type": "reasoning", "summary": [{"text": word["reasoning"]}]}
    other = response(thought, "No.", incomplete_details={"reason": word["finish_reason"]}, x=word["alternative"])
    for decode, body in ((decode_reply, reply), (decode_response, other)):
        sent = json.dumps(body)
        with pytest.raises(ModelError, match="holds the API key"):
            decode(sent.replace("THERE", written).encode(), ASKED, key=key)
        assert decode(sent.replace("THERE", "another").encode(), ASKED, key=key).text == "No."
