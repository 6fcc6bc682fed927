"""Pages of a run under way, and of one of its debates: what they say while their server is busy, refuses, or stops, and
what they keep when they grow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from opened_page import Apart, OpenPage, Serve
from planted_records import PlantedSession, extend, plant
from viewed_runs import viewed

from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]

UNDER_WAY = "Under way: 0 of 2 cases have a verdict."
LATER = 60_000
"""Milliseconds after which a page gives up a server that is silent, or not reachable."""


OPEN = "all => all.map(each => each.closest('.turn').querySelector('h3').textContent + each.firstChild.textContent)"
"""Of open details: whose reply they are of, and their summary."""


@pytest.fixture
def owned(tmp_path: Path, apart: Apart) -> Iterator[tuple[Path, Ownership]]:
    """A run that this process works on, with an open debate; and its owner."""
    session = PlantedSession(compacts=False)
    session.case("open")
    session.reply("open", "opening/agent/0", 10)
    settings = {"schema_version": 1, "cases": 2, "sessions": [{"status": "running"}]}
    planted = apart(lambda: plant(tmp_path / "runs" / "open", [session], settings))
    owner = Ownership.acquire(RunFolder(planted))
    yield planted, owner
    owner.release()


@pytest.fixture
def run(owned: tuple[Path, Ownership]) -> Path:
    """Its folder."""
    return owned[0]


def test_a_server_that_is_busy_is_not_one_that_has_died(
    run: Path, open_page: OpenPage, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.deploy.service.live.live_run.UPDATE_S", 3600.0)
    monkeypatch.setattr("moot.deploy.service.live.live_run.HEARTBEAT_S", 0.05)
    address = serve(run.parent)
    opened = open_page(f"{address}runs/open/")
    opened.page.get_by_text(UNDER_WAY).wait_for()
    opened.page.clock.install()
    opened.page.clock.fast_forward(LATER)
    opened.page.get_by_text("Reading the record ... The figures are those of ").wait_for()
    assert not opened.page.get_by_text("The server does not answer.").count()


def test_a_refused_page_says_why(run: Path, open_page: OpenPage, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.service.view.followed._MOST_VIEWERS", 0)
    address = serve(run.parent)
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
    opened.page.close()  # an open page asks the ended server again
    opened.said.clear()  # the browser's own errors of a broken connection


def test_the_first_verdict_brings_its_columns(
    owned: tuple[Path, Ownership], apart: Apart, open_page: OpenPage, serve: Serve
) -> None:
    run, owner = owned
    session = PlantedSession(compacts=False)
    session.case("opposed")
    session.verdict("opposed", "Yes", "converged")
    address = serve(run.parent)
    page = open_page(f"{address}runs/open/").page
    heads = page.locator(".case-table .tabulator-col-title")
    page.get_by_label("Filter by Case").fill("op")
    page.get_by_role("gridcell", name="open", exact=True).first.wait_for()
    before = heads.all_inner_texts()
    apart(lambda: extend(run, session, owner))
    page.get_by_text("Under way: 1 of 2").wait_for()
    page.get_by_label("Filter by Case").blur()
    page.get_by_role("gridcell", name="converged").wait_for()
    after = heads.all_inner_texts()
    assert {"Answer", "How it ended", "Rounds"} <= {*after} - {*before}
    assert after == page.evaluate(
        "fetch('cases.json').then((r) => r.json()).then((r) => r.columns.map((c) => c.title))"
    )
    assert page.get_by_label("Filter by Case").input_value() == "op"


def test_a_page_follows_a_run_that_is_resumed_after_its_process_has_died(
    owned: tuple[Path, Ownership], apart: Apart, open_page: OpenPage, serve: Serve
) -> None:
    run, owner = owned
    later = PlantedSession(compacts=False)
    later.case("next")
    later.verdict("next", "Yes", "converged")
    address = serve(run.parent)
    page = open_page(f"{address}runs/open/").page
    page.get_by_text(UNDER_WAY).wait_for()
    owner.release()
    page.get_by_text("Its process has died: 0 of 2 cases").wait_for()
    resumed = Ownership.acquire(RunFolder(run))
    try:
        page.get_by_text(UNDER_WAY).wait_for()
        assert page.get_by_role("link", name="Report so far").count()
        apart(lambda: extend(run, later, resumed))
        page.get_by_text("Under way: 1 of 2").wait_for()
    finally:
        resumed.release()


def test_a_debate_that_is_refused_says_why_and_is_followed_again(
    run: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with viewed(run.parent) as address:
        opened = open_page(f"{address}runs/open/")
        page = opened.page
        page.get_by_text(UNDER_WAY).wait_for()
        monkeypatch.setattr("moot.deploy.service.view.followed._MOST_VIEWERS", 1)
        page.clock.install()
        page.get_by_role("link", name="open", exact=True).first.click()
        refused = page.get_by_text("This debate cannot be followed: 1 pages follow runs: close one.")
        refused.wait_for()
        monkeypatch.undo()
        page.clock.fast_forward(LATER)
        refused.wait_for(state="detached")
        assert page.locator("#transcript .turn").count() == 1
    opened.page.get_by_text("The server does not answer. The transcript is that of before.").wait_for()
    opened.page.close()  # an open page asks the ended server again
    opened.said.clear()  # the browser's own errors of what was refused, and of a broken connection


def test_what_is_open_in_a_transcript_stays_open_when_it_grows(
    owned: tuple[Path, Ownership], apart: Apart, open_page: OpenPage, serve: Serve
) -> None:
    run, owner = owned
    first, later = PlantedSession(compacts=False), PlantedSession(compacts=False)
    for session, agent in ((later, "agent/0"), (first, "agent/1")):
        session.said("open", f"round/1/{agent}", "Yes", 0.5, "It is.")
        session.said("open", f"crit/round/1/{agent}/judge/0", "Yes", 0.5, "It is good.")
    apart(lambda: extend(run, first, owner))
    address = serve(run.parent)
    page = open_page(f"{address}runs/open/#case=open").page
    page.locator(".judging summary").click()
    page.locator(".judging .turn summary").click()
    page.locator(".judging pre").wait_for()
    is_open = page.locator("#transcript details[open]").evaluate_all(OPEN)
    assert len(is_open) == 2
    apart(lambda: extend(run, later, owner))
    page.locator(".judging").nth(1).wait_for()
    assert page.locator("#transcript details[open]").evaluate_all(OPEN) == is_open
    assert page.locator(".judging pre").count() == 1
