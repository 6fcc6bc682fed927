"""Redaction of API keys, passwords and signatures in text."""

from __future__ import annotations

import re

_LOOKS_SECRET = re.compile(
    r"(?P<scheme>\bbearer\s+)[^\s\"',;]+"  # an echoed Authorization header
    r"|\b(?:sk|pk|rk|hf|gsk|xai|key)[-_][\w*.\-]{6,}",  # the usual formats of vendors' keys, masked or not
    re.IGNORECASE,
)

# Each expression takes time linear in the text's length, however hostile: none reads a character from many starts.

_BEFORE_AT = re.compile(r"(?<![^@\s])([^@\s]++)@")
"""Characters before an `@`, back to a blank or another `@`."""

_USER = re.compile(
    r"(?P<start>//|(?<=\w:)/)"  # one slash: a URI that went through `pathlib.Path`
    r"(?:[^/:]++:(?!\d++[/?#]).|[^/]++\Z)"  # keys of S3 hold slashes; digits behind a colon are a port
)
"""Start of a URL's user information in the characters before an `@`."""

_URL = re.compile(r"(\bhttps?://[^\s?#\"'<>]++)(\?[^\s#\"'<>]++)?", re.IGNORECASE)

_OPTION = re.compile(r"([?&#][\w.-]{0,32}?(?:key|secret|token|password|sig)[\w.-]{0,32}=)[^\s&#\"'<>]++", re.IGNORECASE)
"""Option of any URI whose name says that its value is a secret."""


def redact(text: str, key: str | None = None) -> str:
    """`text` with `key`, and everything that looks like an API key or is a URL's password or query, replaced by
    `[secret]`.

    >>> redact("Incorrect API key provided: sk-abcdef123. See https://u:p@host/")
    'Incorrect API key provided: [secret] See https://[secret]@host/'
    """
    if key:
        text = text.replace(key, "[secret]")
    return _LOOKS_SECRET.sub(r"\g<scheme>[secret]", without_credentials(text))


def without_credentials(text: str) -> str:
    """`text` with the user information of URLs, the query of HTTP URLs (a signature or a token), and options of other
    URIs that are named as secrets, replaced by `[secret]`.

    >>> without_credentials("no such file: https://u:p@host/cases.csv?sig=abc")
    'no such file: https://[secret]@host/cases.csv?[secret]'
    >>> without_credentials("s3://KEY:se/cret@bucket/x, s3:/KEY:se/cret@bucket/x, http://host:8000/v1#model@latest")
    's3://[secret]@bucket/x, s3:/[secret]@bucket/x, http://host:8000/v1#model@latest'
    >>> without_credentials("s3://bucket/x?secret_key=abc&region=eu, s3:/bucket/x#token=abc")
    's3://bucket/x?secret_key=[secret]&region=eu, s3:/bucket/x#token=[secret]'
    """
    text = _OPTION.sub(r"\1[secret]", text)
    without_queries = _URL.sub(lambda url: f"{url[1]}?[secret]" if url[2] else url[1], text)
    return _BEFORE_AT.sub(_without_user, without_queries)


def _without_user(found: re.Match[str]) -> str:
    user = _USER.search(found[1])
    return f"{found[1][: user.end('start')]}[secret]@" if user else found[0]
