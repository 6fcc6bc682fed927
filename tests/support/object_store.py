"""Object store with the part of the S3 API that pyarrow uses: on loopback, in memory, with counters and faults."""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from aiohttp import web

BUCKET = "runs"
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"

Fault = Callable[[str, str], str | None]
"""S3 error for a request by its kind and key; None for no error."""

_STATUS = {"AccessDenied": 403, "NoSuchBucket": 404, "NoSuchKey": 404, "SlowDown": 503, "InternalError": 500}


@dataclass
class ObjectStore:
    """Content of the bucket, and received requests.

    Attributes:
        objects: content and Unix time of the last change, by key.
        requests: number of requests by kind: PUT, GET, HEAD, LIST, DELETE.
        puts: keys in the order in which they were put.
        fault: function that makes requests fail.
    """

    port: int = 0
    objects: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    puts: list[str] = field(default_factory=list)
    fault: Fault = lambda kind, key: None

    def uri(self, path: str, bucket: str = BUCKET) -> str:
        """Value of `--out`."""
        return f"s3://{bucket}/{path}?endpoint_override=127.0.0.1:{self.port}&scheme=http"

    def keys(self, path: str = "") -> list[str]:
        """Keys of the objects below a folder, without markers of folders."""
        return sorted(key for key in self.objects if key.startswith(path) and not key.endswith("/"))

    def put(self, key: str, data: bytes) -> None:
        """Store an object."""
        self.objects[key] = (data, time.time())
        self.puts.append(key)


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Server in its own thread; the environment has credentials, which it does not check."""
    store = ObjectStore()
    started = threading.Event()
    stops: list[Callable[[], object]] = []

    async def serve() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(stop.set))
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", partial(_answer, store))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        store.port = runner.addresses[0][1]
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        try:
            yield store
        finally:
            stops[0]()
            thread.join()


async def _answer(store: ObjectStore, request: web.Request) -> web.Response:
    """Response of the bucket; HEAD of a folder succeeds."""
    bucket, _, key = request.match_info["path"].partition("/")
    kind = "LIST" if request.method == "GET" and not key else request.method.replace("POST", "DELETE")
    store.requests[kind] += 1
    if error := store.fault(kind, key) or (None if bucket == BUCKET else "NoSuchBucket"):
        return _error(error, head=kind == "HEAD")
    if kind == "PUT":
        data = await _body(request)
        store.put(key, data)
        return web.Response(headers={"ETag": _tag(data)})
    if kind == "LIST":
        return _listed(store, request.query.get("prefix", ""))
    if kind == "DELETE":
        several = ElementTree.fromstring(await _body(request)).iter(f"{{{NAMESPACE}}}Key") if not key else ()
        for each in [key] if key else [found.text or "" for found in several]:
            store.objects.pop(each, None)
        return web.Response(status=204) if key else _xml("DeleteResult", "")
    if key and key not in store.objects:
        return _error("NoSuchKey", head=kind == "HEAD")
    data, at = store.objects.get(key, (b"", 0.0))
    headers = {"ETag": _tag(data), "Last-Modified": formatdate(at, usegmt=True), "Accept-Ranges": "bytes"}
    if kind == "HEAD":
        return web.Response(headers=headers | {"Content-Length": str(len(data))})
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
    if found is None:
        return web.Response(body=data, headers=headers)
    first, last = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
    headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
    return web.Response(status=206, body=data[first : last + 1], headers=headers)


def _listed(store: ObjectStore, prefix: str) -> web.Response:
    """All keys on one page, which S3 would limit to a thousand."""
    body = "<IsTruncated>false</IsTruncated>"
    for key in sorted(key for key in store.objects if key.startswith(prefix)):
        data, at = store.objects[key]
        when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at))
        size = f"<Size>{len(data)}</Size><StorageClass>STANDARD</StorageClass>"
        body += f"<Contents><Key>{escape(key)}</Key><LastModified>{when}</LastModified>{size}</Contents>"
    return _xml("ListBucketResult", body)


async def _body(request: web.Request) -> bytes:
    """Body of a request, decoded if it is chunked with a signature or a checksum."""
    raw = await request.read()
    if "aws-chunked" not in request.headers.get("Content-Encoding", ""):
        return raw
    data = b""
    while raw:
        head, _, rest = raw.partition(b"\r\n")
        size = int(head.split(b";")[0], 16)
        if not size:
            break
        data, raw = data + rest[:size], rest[size + 2 :]
    return data


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def _xml(name: str, body: str) -> web.Response:
    return web.Response(text=f'<{name} xmlns="{NAMESPACE}">{body}</{name}>', content_type="application/xml")


def _error(code: str, *, head: bool = False) -> web.Response:
    text = "" if head else f"<Error><Code>{code}</Code><Message>the test says {code}</Message></Error>"
    return web.Response(status=_STATUS[code], text=text, content_type="application/xml")
