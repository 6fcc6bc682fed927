"""Proxies of the environment: one rule for URLs, pictures, encoders and the vendors' SDKs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from openai_server import DECODING, KEY, MESSAGES, VENDORS, WHOLE, answers, compatible, served_model

from moot.actors.encoders.resolve import make_encoder
from moot.actors.models.anthropic_sdk import AnthropicModel
from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import ModelError
from moot.actors.models.openai_sdk import OpenAIModel
from moot.actors.models.pictures import download
from moot.actors.models.proxies import environment_proxy
from moot.actors.models.retry import RetryPolicy
from moot.protocols.errors import ConfigError, MootError

pytestmark = pytest.mark.usefixtures("certificates_read_once", "vendor_key", "no_proxies")

PROXY = "http://127.0.0.1:3128"


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("url", "variables", "expected"),
    [
        ("https://a.org/v1", {}, None),
        ("https://a.org/v1", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://a.org/v1", {"https_proxy": PROXY}, PROXY),
        ("https://a.org/v1", {"HTTPS_PROXY": "127.0.0.1:3128"}, PROXY),
        ("https://a.org/v1", {"HTTPS_PROXY": ""}, None),
        ("https://a.org/v1", {"HTTPS_PROXY": "http://other", "https_proxy": PROXY}, PROXY),
        ("https://a.org/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://a.org/v1", {"HTTP_PROXY": PROXY, "HTTPS_PROXY": "http://other"}, PROXY),
        ("http://a.org/v1", {"ALL_PROXY": PROXY}, PROXY),
        ("http://localhost:8000/v1", {"ALL_PROXY": PROXY}, None),
        ("http://127.0.0.1:8000/v1", {"ALL_PROXY": PROXY}, None),
        ("http://[::1]:8000/v1", {"ALL_PROXY": PROXY}, None),
    ],
)
def test_the_proxy_of_a_url(
    monkeypatch: pytest.MonkeyPatch, url: str, variables: dict[str, str], expected: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert environment_proxy(url) == expected


@pytest.mark.parametrize(
    ("entries", "host", "excluded"),
    [
        ("*", "a.org", True),
        ("b.org, A.org", "a.org", True),
        ("b.org a.org", "a.org", True),
        ("a.org", "www.a.org", True),
        (".a.org", "www.a.org", True),
        ("*.a.org", "www.a.org", True),
        ("a.org", "nota.org", False),
        ("a.org", "a.org.evil.net", False),
        ("www.a.org", "a.org", False),
        ("a.org:8000", "a.org:8000", True),
        ("a.org:8001", "a.org:8000", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.1.2.3", "10.1.2.3:80", True),
        ("0.1.2.3", "10.1.2.3", False),
        ("10.0.0.0/8", "10.a.org", False),
        ("fd00::/8", "[fd00::1]", True),
        ("[fd00::1]:8000", "[fd00::1]:8000", True),
        ("fd00::1", "[fd00::1]", True),
        (",, ,.", "a.org", False),
        ("", "a.org", False),
    ],
)
def test_hosts_without_a_proxy(monkeypatch: pytest.MonkeyPatch, entries: str, host: str, excluded: bool) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", entries)
    assert (environment_proxy(f"http://{host}/v1") is None) is excluded


@pytest.mark.parametrize(
    "unusable",
    [
        "socks5://me:hunter2@127.0.0.1:1080",
        "http://me:hunter2/x@127.0.0.1:1080",
        "me:hunter2#x@127.0.0.1:80",
        "http://me:hunter2@[::1",
        "http://me:hunter2@",
    ],
)
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(
    monkeypatch: pytest.MonkeyPatch, unusable: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", unusable)
    with pytest.raises(ConfigError, match="NO_PROXY") as caught:
        environment_proxy("https://a.org/v1")
    assert "hunter2" not in str(caught.value)


@asynccontextmanager
async def proxy(heads: list[str]) -> AsyncIterator[int]:
    """Port of a proxy that connects to nobody, and notes what it was asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 503 Proxy says no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def _completed(model: Any) -> None:
    try:
        await model.complete(MESSAGES, DECODING, step_key="k")
    finally:
        await model.close()


async def _encoded() -> None:
    encoder = make_encoder("https://nowhere.invalid/v1#m", RetryPolicy(max_attempts=1))
    try:
        await encoder.encode(["a"])
    finally:
        await encoder.close()


CLIENTS: dict[str, Callable[[], Any]] = {
    "url": lambda: _completed(CompatibleModel("https://nowhere.invalid/v1", "m")),
    "openai": lambda: _completed(OpenAIModel("m", api_key_env="MOOT_TEST_KEY")),
    "anthropic": lambda: _completed(AnthropicModel("m", api_key_env="MOOT_TEST_KEY")),
    "encoder": _encoded,
    "picture": lambda: asyncio.to_thread(download, "https://nowhere.invalid/cat.png", 99),
}


@pytest.mark.parametrize("name", CLIENTS)
async def test_all_clients_use_the_proxy_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{vendor}_BASE_URL", "https://nowhere.invalid")
    heads: list[str] = []
    async with proxy(heads) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        with pytest.raises(MootError if name in ("encoder", "picture") else ModelError) as through:
            await CLIENTS[name]()
        assert [head.split("\r\n")[0] for head in heads] == ["CONNECT nowhere.invalid:443 HTTP/1.1"]
        assert KEY not in heads[0]
        assert "Proxy says no" in str(through.value)
        monkeypatch.setenv("NO_PROXY", "*.invalid")
        with pytest.raises((MootError, ModelError)) as direct:
            await CLIENTS[name]()
    assert len(heads) == 1
    assert "Proxy" not in str(direct.value)


async def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    port = unused_port()
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:hunter2@127.0.0.1:{port}")
    with pytest.raises(ModelError, match=f"the proxy 127.0.0.1:{port}") as caught:
        await CLIENTS["url"]()
    assert "hunter2" not in repr(caught.value)
    assert not caught.value.may_be_billed


async def test_a_proxys_password_goes_to_the_proxy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[str] = []
    async with proxy(heads) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:hunter2@127.0.0.1:{port}")
        with pytest.raises(ModelError) as caught:
            await CLIENTS["url"]()
    assert "Proxy-Authorization: Basic " in heads[0]
    assert "hunter2" not in repr(caught.value)


@pytest.mark.parametrize("name", VENDORS)
async def test_this_machine_is_asked_directly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with served_model(VENDORS[name], answers(200, WHOLE[name])) as model:
        assert (await model.complete(MESSAGES, DECODING, step_key="k")).text == "No."


async def test_what_netrc_holds_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    seen: list[str | None] = []

    async def answer(request: Any) -> Any:
        seen.append(request.headers.get("Authorization"))
        return await answers(200, WHOLE["compatible"])(request)

    for make in (compatible, lambda url: CompatibleModel(url, "m")):
        async with served_model(make, answer) as model:
            await model.complete(MESSAGES, DECODING, step_key="k")
    assert seen == [f"Bearer {KEY}", None]
