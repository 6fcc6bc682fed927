"""Errors of OpenAI-style services as `ModelError`: the one table of kinds, waits and messages."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from moot.actors.models.interface import ModelError, RateHeaders
from moot.actors.telemetry.redaction import redact

MESSAGE_LIMIT = 300
"""Longest message of a `ModelError`, in characters."""

_SHORTEST_SECRET = 16
"""Least characters of a key; a shorter one is the `any` or `EMPTY` of a server without keys, and a word of replies."""

_READ, _LONGEST_KEY = 64 * MESSAGE_LIMIT, 8 * MESSAGE_LIMIT
_MOST_OF_A_BODY = 2**18
"""Bytes of an error that is no JSON: more than `plain` reads behind the longest key, so that `plain` truncates it."""

_ESCAPED = re.compile(rb"\\u00([2-7][0-9a-fA-F])|\\(/)")
"""Characters of a key that JSON may escape, beside quotes and backslashes, which it must."""

_OUT_OF_CREDIT = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}
_CONTENT_FILTER = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}
_CONTEXT_LENGTH = {"context_length_exceeded", "exceed_context_size_error"}
_STATUS_OF = (
    (429, ("rate_limit", "too_many_requests", "throttl", "resource_exhausted", *_OUT_OF_CREDIT)),
    (401, ("authentication", "unauth", "invalid_api_key", "permission", "forbidden", "access_denied", "billing")),
    (400, ("invalid_request", "model_not_found", *_CONTENT_FILTER, *_CONTEXT_LENGTH)),
)
"""Status of an error by the starts of its codes, where it states no status."""

_ABOUT_URL = re.compile(r"endpoint|route|\bpath\b|\burl\b|not found", re.IGNORECASE)
"""An error about the requested address, which some servers state with status 200."""

_OF_ANOTHER_ADDRESS = frozenset((301, 302, 303, 307, 308, 404, 405, 501))

_STATUS_WORDS = frozenset(str(status) for status in range(400, 600))
_CONTEXT_WORDS = ("maximum context length", "context window", "context length", "context size")


class UnexpectedResponse(ModelError):
    """Response that the requested API does not give: the URL may be wrong."""


@contextmanager
def hint_at_url(hint: str) -> Iterator[None]:
    """Adds a hint to failures inside that a wrong URL may have caused; an empty one adds nothing."""
    try:
        yield
    except UnexpectedResponse as error:
        if not hint:
            raise
        room = MESSAGE_LIMIT - len(hint) - 3
        said = error.message if len(error.message) <= room else error.message[: room - 1] + "…"
        hinted = UnexpectedResponse(error.kind, f"{said} ({hint})", error.retry_after_s)
        hinted.may_be_billed, hinted.limits = error.may_be_billed, error.limits
        raise hinted from None


class VendorError(msgspec.Struct, frozen=True):
    """Error message and codes from a vendor's error body.

    Attributes:
        message: for people; empty when the body has none.
        codes: its `code`, `type`, `status` and `details.error_code`, lower case.
        status: HTTP status in the body itself (routers put one in a 200); None otherwise.
    """

    message: str
    codes: frozenset[str] = frozenset()
    status: int | None = None

    @classmethod
    def from_body(cls, body: bytes) -> VendorError:
        """Read `{"error": {...}}`, `{"error": "text"}`, `{"message": ...}` or any text; never raises."""
        try:
            data = msgspec.json.decode(body)
        except (ValueError, RecursionError):
            return cls(body[:_MOST_OF_A_BODY].decode("utf-8", "replace"))
        data = _first(data)  # some gateways wrap the object in a list
        error = _first(data.get("error")) if isinstance(data, dict) else None
        inner, outer = cls.from_data(error), cls.from_data(data)
        if isinstance(error, dict) and inner.message.strip():
            return inner
        words = ": ".join(each.message for each in (inner, outer) if each.message.strip())
        return cls(words, inner.codes | outer.codes, inner.status or outer.status)

    @classmethod
    def from_data(cls, error: object) -> VendorError:
        """As `from_body`, from the decoded `error` value."""
        error = _first(error)
        if not isinstance(error, dict):
            return cls(error if isinstance(error, str) else "")
        stated = error.get("message")
        message = _text(stated) if isinstance(stated, str | list) else ""  # of Ollama's own API it is an object
        message = message or next((_text(error[name]) for name in _OTHER_KEYS if error.get(name)), "")
        details, metadata = error.get("details"), error.get("metadata")
        if isinstance(metadata, dict) and (raw := _text(metadata.get("raw"))):  # what a router was told by a provider
            message = f"{message}: {raw}" if message else raw
        detail = details.get("error_code") if isinstance(details, dict) else None
        words = (error.get("code"), error.get("type"), error.get("status"), error.get("status_code"), detail)
        codes = frozenset(str(word).lower() for word in words if isinstance(word, str | int))
        return cls(message, codes, next((int(code) for code in sorted(codes) if code in _STATUS_WORDS), None))


_OTHER_KEYS = ("detail", "msg", "error_message")
"""Keys of a message, beside the usual one."""


def _first(value: object) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _text(value: object) -> str:
    """A message as text: some servers send a list of problems."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode("utf-8", "replace") if isinstance(value, list | dict) and value else ""


def error_from_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    key: str | None = None,
    now: float | None = None,
    limits: RateHeaders | None = None,
) -> ModelError:
    """Maps a response with an error status to a `ModelError`. It is not billed: the server states that it returned
    nothing.

    Args:
        status: HTTP status, 300 and up.
        headers: with case-insensitive lookup.
        body: as received, decompressed.
        key: the API key in use, kept out of the message.
        now: seconds since the epoch, to read a dated `Retry-After`; the clock when None.
        limits: rate limits in the headers.
    """
    error = VendorError.from_body(body)
    wait = retry_after(headers, time.time() if now is None else now)
    failure = vendor_failure(status, error, key=key, retry_after_s=wait)
    failure.limits = limits
    return failure


def vendor_failure(
    status: int, error: VendorError, *, key: str | None = None, retry_after_s: float | None = None
) -> ModelError:
    """Maps a vendor's error under an HTTP status to a `ModelError`."""
    return status_failure(_kind(status, error), status, error, key, retry_after_s)


STATED = "the reply states "
"""Start of the message of an error that a response with status 200 states."""


def failure_in_reply(
    body: bytes,
    error: object,
    missing: str,
    key: str | None,
    kind_of: Callable[[frozenset[str]], str | None] = lambda codes: None,
) -> ModelError:
    """Maps a 200 response with an error object, or without the expected content, to a `ModelError`.

    Args:
        body: of the response; some servers use it for the error itself, without an error object.
        error: the object; None without one.
        missing: expected content of the reply.
        key: the API key in use, kept out of the message.
        kind_of: kind of failure by a vendor's own codes; None for what they do not decide.
    """
    stated = VendorError.from_data(error) if error else VendorError.from_body(body)
    if not (stated.message or (error and stated.codes)):
        return UnexpectedResponse("server", f"the reply holds no {missing}")
    failure = stated_failure(stated, key, kind_of(stated.codes))
    may_be_url = failure.kind == "server" and stated.status is None
    if may_be_url and (not error or _ABOUT_URL.search(stated.message)):
        return UnexpectedResponse(failure.kind, failure.message)
    return failure


def stated_failure(error: VendorError, key: str | None, kind: str | None = None) -> ModelError:
    """Maps an error that a response with status 200 states to a `ModelError`.

    Args:
        error: as stated.
        key: the API key in use, kept out of the message.
        kind: of the failure; None reads it from the status that the error states, or from its codes.
    """
    status = error.status or next((status for status, words in _STATUS_OF if _any_starts(error.codes, words)), 500)
    named = f"error {error.status}" if error.status else "an error"
    said = f": {error.message}" if error.message.strip() else " without a message"
    return ModelError(kind or _kind(status, error), plain(f"{STATED}{named}{said}", key))


def _any_starts(codes: frozenset[str], words: Iterable[str]) -> bool:
    return any(code.startswith(tuple(words)) for code in codes)


LONG_WAIT_S = 30.0
"""Wait in seconds from which a server's `Retry-After` is said in its message."""


def status_failure(
    kind: str, status: int, error: VendorError, key: str | None, retry_after_s: float | None
) -> ModelError:
    """Builds a `ModelError` of this kind, with a one-line message; a wait counts only where a retry can help."""
    waits = retry_after_s if kind in ("rate_limited", "server") else None
    detail = f": {error.message}" if error.message.strip() else " without a message"
    note = " (redirects are not followed)" if 300 <= status < 400 else ""
    asked = f", and asks to wait {waits:.0f} s" if waits is not None and waits >= LONG_WAIT_S else ""
    is_page = status < 500 and error.message.lstrip().startswith("<")
    failure = UnexpectedResponse if status in _OF_ANOTHER_ADDRESS or is_page else ModelError
    return failure(kind, plain(f"HTTP {status}{note}{asked}{detail}", key), waits)


def _kind(status: int, error: VendorError) -> str:
    if status == 429:
        return "refused" if error.codes & _OUT_OF_CREDIT else "rate_limited"
    if status in (408, 409) or status >= 500:
        return "server"
    if status in (401, 402, 403):
        return "refused"
    if error.codes & _CONTENT_FILTER:
        return "content_filter"
    message = error.message.lower()
    if error.codes & _CONTEXT_LENGTH or (status in (400, 413) and any(word in message for word in _CONTEXT_WORDS)):
        return "context_length"
    return "request"


def plain(text: str, key: str | None = None) -> str:
    """Sanitised message: one line without secrets and control characters, at most `MESSAGE_LIMIT` characters."""
    margin = max(_LONGEST_KEY, len(key or ""))
    whole = redact(text[: _READ + margin], key)
    # The truncated part may have begun within a key, of which nothing may remain.
    words = " ".join((whole if len(text) <= _READ + margin else whole[:-margin]).split())
    line = "".join(char if char.isprintable() else "?" for char in words)
    return line if len(line) <= MESSAGE_LIMIT else line[: MESSAGE_LIMIT - 1] + "…"


def refuse_key(key: str | None, body: bytes, *texts: str) -> None:
    """Rejects a reply that contains the API key: replies are recorded verbatim.

    Raises:
        ModelError: the key occurs in the body, escaped or not, or in a text decoded from it.
    """
    if not key or len(key) < _SHORTEST_SECRET:
        return
    sent = key.encode()
    if any(key in text for text in texts) or _stands_in(body, sent):
        raise ModelError("unparsable", "the reply holds the API key, and is not recorded", may_be_billed=True)


def _stands_in(body: bytes, sent: bytes) -> bool:
    """Whether a key occurs in JSON, however its characters are escaped."""
    if sent in body:
        return True
    if b"\\u00" in body or b"\\/" in body:
        body = _ESCAPED.sub(lambda found: found[2] or bytes.fromhex(found[1].decode()), body)
    return sent in body or msgspec.json.encode(sent.decode())[1:-1] in body


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """`Retry-After` in seconds, 0 and up; None when it is missing or unreadable.

    `retry-after-ms` is more precise and takes precedence; `Retry-After` is seconds or an HTTP date, read against `now`.
    """
    exact = _seconds(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _seconds(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None
