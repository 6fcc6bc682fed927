"""Redaction of API keys, passwords and signatures in text."""

from __future__ import annotations

import re

_LOOKS_SECRET = re.compile(
    r"(?P<scheme>\bbearer\s+)[^\s\"',;]+"  # an echoed Authorization header
    r"|\b(?:sk|pk|rk|hf|gsk|xai|key)[-_][\w*.\-]{6,}",  # the usual formats of vendors' keys, masked or not
    re.IGNORECASE,
)

_PASSWORD = re.compile(
    r"(?P<slashes>//|(?<=\w:)/)"  # one slash: a URI that went through `pathlib.Path`
    r"(?:[^/@\s:]+:(?!\d+[/?#])[^@\s]+|[^/@\s]+)@"  # keys of S3 hold slashes; digits behind a colon are a port
)

_QUERY = re.compile(r"(\bhttps?://[^\s?#\"'<>]+)\?[^\s#\"'<>]+", re.IGNORECASE)


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
    """`text` with the user information of URLs, and the query of HTTP URLs (a signature or a token), replaced by
    `[secret]`.

    >>> without_credentials("no such file: https://u:p@host/cases.csv?sig=abc")
    'no such file: https://[secret]@host/cases.csv?[secret]'
    >>> without_credentials("s3://KEY:se/cret@bucket/x, s3:/KEY:se/cret@bucket/x, http://host:8000/v1#model@latest")
    's3://[secret]@bucket/x, s3:/[secret]@bucket/x, http://host:8000/v1#model@latest'
    """
    return _PASSWORD.sub(r"\g<slashes>[secret]@", _QUERY.sub(r"\1?[secret]", text))
