"""Redaction: text without what looks like a key, a password or a signature."""

from __future__ import annotations

import re

_LOOKS_SECRET = re.compile(
    r"(?P<scheme>\bbearer\s+)[^\s\"',;]+"  # a header that was echoed
    r"|\b(?:sk|pk|rk|hf|gsk|xai|key)[-_][\w*.\-]{6,}",  # the usual shapes of vendors' keys, masked or not
    re.IGNORECASE,
)


_PASSWORD = re.compile(r"//[^/@\s]+@")


_QUERY = re.compile(r"(\bhttps?://[^\s?#\"'<>]+)\?[^\s#\"'<>]+", re.IGNORECASE)


def redact(text: str, key: str | None = None) -> str:
    """`text` with `key`, and anything like a key, a password in a URL or its query, replaced by `[secret]`.

    >>> redact("Incorrect API key provided: sk-abcdef123. See https://u:p@host/")
    'Incorrect API key provided: [secret] See https://[secret]@host/'
    """
    if key:
        text = text.replace(key, "[secret]")
    return _LOOKS_SECRET.sub(r"\g<scheme>[secret]", without_credentials(text))


def without_credentials(text: str) -> str:
    """`text` without the private parts of addresses: a user with a password, and what follows the `?` of a web address,
    a signature or a token.

    >>> without_credentials("no such file: https://u:p@host/cases.csv?sig=abc")
    'no such file: https://[secret]@host/cases.csv?[secret]'
    """
    return _PASSWORD.sub("//[secret]@", _QUERY.sub(r"\1?[secret]", text))
