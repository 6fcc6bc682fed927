"""What tests of this folder need not wait for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from journal_writer import new_run
from openai_server import BACKENDS, KEY, KEY_ENV, VENDORS, MakeModel, MakeVendor

from moot.actors.record.folder import RunFolder


@pytest.fixture(scope="package", autouse=True)
def _without_company() -> Iterator[None]:
    """Runs in this process: no verdict waits for others, and no report for more of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moot.actors.record.journal._COMMIT_S", 0.005)
        patch.setattr("moot.actors.debate.moderator._LINGER_S", 0.005)
        yield


@pytest.fixture(scope="module")
def certificates_read_once() -> Iterator[None]:
    """Each client of a vendor's SDK reads all authorities of the machine, which takes longer than a test with it."""
    import httpx2

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx2, "create_ssl_context", cache(httpx2.create_ssl_context))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """The folder of a run that nobody owns yet."""
    return new_run(tmp_path / "run")


@pytest.fixture
def vendor_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key that clients of vendors read here, and no other variable of theirs."""
    monkeypatch.setenv(KEY_ENV, KEY)
    for vendor in ("OPENAI", "ANTHROPIC"):
        for name in ("BASE_URL", "API_KEY", "AUTH_TOKEN", "CUSTOM_HEADERS"):
            monkeypatch.delenv(f"{vendor}_{name}", raising=False)


@pytest.fixture(params=BACKENDS)
def make(request: pytest.FixtureRequest) -> MakeModel:
    """Each client of OpenAI's wire."""
    return BACKENDS[request.param]


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> MakeVendor:
    """Each client of any wire."""
    return VENDORS[request.param]
