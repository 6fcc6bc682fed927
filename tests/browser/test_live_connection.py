"""The page of a run under way while its server is busy, refuses, or stops: its first line says what is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from opened_page import Apart, OpenPage
from planted_records import PlantedSession, plant
from viewed_runs import viewed

from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]

UNDER_WAY = "Under way: 0 of 2 cases have a verdict."
LATER = 60_000
"""Milliseconds after which a page gives up a server that is silent, or not reachable."""


@pytest.fixture
def run(tmp_path: Path, apart: Apart) -> Iterator[Path]:
    """A run that this process works on, with an open debate."""
    session = PlantedSession(compacts=False)
    session.case("open")
    session.reply("open", "opening/agent/0", 10)
    settings = {"schema_version": 1, "cases": 2, "sessions": [{"status": "running"}]}
    planted = apart(lambda: plant(tmp_path / "runs" / "open", [session], settings))
    owner = Ownership.acquire(RunFolder(planted))
    yield planted
    owner.release()


def test_a_server_that_is_busy_is_not_one_that_has_died(
    run: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.deploy.service.live.live_run.UPDATE_S", 3600.0)
    monkeypatch.setattr("moot.deploy.service.live.live_run.HEARTBEAT_S", 0.05)
    with viewed(run.parent) as address:
        opened = open_page(f"{address}runs/open/")
        opened.page.get_by_text(UNDER_WAY).wait_for()
        opened.page.clock.install()
        opened.page.clock.fast_forward(LATER)
        opened.page.get_by_text("Reading the record ... The figures are those of ").wait_for()
        assert not opened.page.get_by_text("The server does not answer.").count()


def test_a_refused_page_says_why(run: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.service.view.followed._MOST_VIEWERS", 0)
    with viewed(run.parent) as address:
        opened = open_page(f"{address}runs/open/")
        refused = opened.page.get_by_text("This run cannot be followed: 0 pages follow runs: close one.")
        refused.wait_for()
        opened.page.clock.install()
        opened.page.clock.fast_forward(LATER)
        refused.wait_for()
        assert not opened.page.get_by_text("The server does not answer.").count()
        monkeypatch.undo()
        opened.page.get_by_text(UNDER_WAY).wait_for()
        assert not refused.count()
    opened.said.clear()  # the browser's own errors of what was refused


def test_a_page_connects_to_a_server_that_starts_again(run: Path, open_page: OpenPage) -> None:
    with viewed(run.parent) as address:
        opened = open_page(f"{address}runs/open/")
        opened.page.get_by_text(UNDER_WAY).wait_for()
    silent = opened.page.get_by_text("The server does not answer.")
    silent.wait_for()
    assert not opened.page.get_by_text(UNDER_WAY).count()
    with viewed(run.parent, urlsplit(address).port or 0):
        opened.page.get_by_text(UNDER_WAY).wait_for()
        assert not silent.count()
    opened.said.clear()  # the browser's own errors of a broken connection
