"""URIs of runs: which texts are URIs, their permitted parts, and the filesystem behind them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from moot.protocols.errors import ConfigError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

SCHEMES = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
"""Schemes of filesystems that pyarrow reaches."""

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_COLLAPSED = re.compile(rf"({'|'.join(SCHEMES)}):/(?!/)")
_S3_OPTIONS = ("endpoint_override", "region", "scheme", "tls_ca_file_path")
_SECRETS = ("key", "secret", "token", "password", "sig")
_CONNECT_S = 5.0
_GS_PATIENCE, _GS_PATIENCE_S = "retry_limit_seconds", 5.0


def is_uri(text: str) -> bool:
    """Whether a run's name is a URI of a store, not a path.

    >>> is_uri("s3://bucket/runs/x"), is_uri("file:///runs/x"), is_uri("runs/x")
    (True, False, False)

    Raises:
        ConfigError: a URI that went through `pathlib.Path`, which takes one of its slashes.
    """
    if _COLLAPSED.match(text):
        raise ConfigError(f"{text}: give a URI as text: a Path takes one of its slashes")
    found = _URI.match(text)
    return found is not None and found[1].lower() != "file"


def local_path(text: str) -> Path:
    """Absolute path of a name; a `file:` URI is one too.

    >>> str(local_path("file:///runs/a%20b"))
    '/runs/a b'

    Raises:
        ConfigError: a `file:` URI of another machine.
    """
    if not text.lower().startswith("file://"):
        return Path(text).expanduser().absolute()
    split = urlsplit(text)
    if split.netloc not in ("", "localhost"):
        raise ConfigError(f"{text}: a file: URI has three slashes before its path")
    return Path(unquote(split.path))


def below(uri: str, name: str) -> str:
    """URI or path of something in a folder.

    >>> below("s3://bucket/x?region=eu-west-1", "selene"), below("runs/x", "selene")
    ('s3://bucket/x/selene?region=eu-west-1', 'runs/x/selene')
    """
    if not is_uri(uri):
        return f"{uri}/{name}"
    place, mark, query = uri.partition("?")
    return f"{place.rstrip('/')}/{name}{mark}{query}"


def open_filesystem(uri: str) -> tuple[FileSystem, str]:
    """Filesystem of a URI, and the path in it. pyarrow finds the credentials.

    Raises:
        ConfigError: the URI contains a secret (which is not repeated), or is invalid for pyarrow.
    """
    split = urlsplit(uri)
    scheme = split.scheme.lower()
    options = dict(parse_qsl(split.query, keep_blank_values=True))
    _refuse_secrets(split, options)
    if scheme not in SCHEMES:
        raise ConfigError(f"{uri}: no filesystem for {scheme}://; known: {', '.join(SCHEMES)}, file")
    try:
        if scheme == "s3":
            return _s3(uri, split, options)
        from pyarrow.fs import FileSystem

        found, path = FileSystem.from_uri(_impatient(uri, split, options))
    except (OSError, ValueError, NotImplementedError) as error:
        raise ConfigError(f"{uri}: {' '.join(str(error).split())}") from None
    return found, str(path).rstrip("/")


def _impatient(uri: str, split: SplitResult, options: dict[str, str]) -> str:
    """Limits the retries of Google's client, which by default retries each request for a quarter of an hour,
    silently."""
    if split.scheme.lower() not in ("gs", "gcs") or _GS_PATIENCE in options:
        return uri
    return f"{uri.rstrip('?')}{'&' if split.query else '?'}{_GS_PATIENCE}={_GS_PATIENCE_S:g}"


def _refuse_secrets(split: SplitResult, options: dict[str, str]) -> None:
    named = [key for key in options if any(word in key.lower() for word in _SECRETS)]
    if split.password is not None:
        named.append("a password")
    if (split.username is not None or ":" in split.netloc) and split.scheme.lower() == "s3":
        named.append("an access key")
    if named:
        raise ConfigError(
            f"the {split.scheme}:// URI holds a secret ({named[0]}), which would be printed and recorded; "
            "leave it out: credentials come from the environment (as AWS_ACCESS_KEY_ID), files, or the machine's role"
        )


def _s3(uri: str, split: SplitResult, options: dict[str, str]) -> tuple[FileSystem, str]:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region

    unknown = [key for key in options if key not in _S3_OPTIONS]
    if unknown:
        raise ConfigError(f"{uri}: unknown option {unknown[0]!r}; known: {', '.join(_S3_OPTIONS)}")
    path = unquote(split.path).strip("/")
    if not split.netloc or not path:
        raise ConfigError(f"{uri}: name a folder in a bucket, as s3://BUCKET/runs/NAME")
    region = options.pop("region", None) or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None:
        region = "us-east-1" if "endpoint_override" in options else resolve_s3_region(split.netloc)
    more: dict[str, Any] = dict(options)
    filesystem = S3FileSystem(
        region=region,
        allow_delayed_open=True,  # a small object is one request
        background_writes=False,
        connect_timeout=_CONNECT_S,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=3),
        **more,
    )
    return filesystem, f"{split.netloc}/{path}"
