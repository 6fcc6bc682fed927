"""`moot view` in a browser with texts and names of every kind: figures, links, and a debate as it is written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hostile_texts import CASES, HOSTILE, NAME, HostileServer
from opened_page import ODD_IDS, Apart, OpenedPage, OpenPage, RunOf, Start
from planted_records import CONTROL
from viewed_runs import address_of
from waiting import wait_until

from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.text import percent, visible

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]


@pytest.fixture(scope="module")
def address(run_of: RunOf, start: Start) -> str:
    """Of the pages of some finished runs."""
    for name in ("selene", "odd-ids"):
        folder = run_of(name).parent
    return address_of(start("view", str(folder), "--port", "0"))


def settled(opened: OpenedPage) -> OpenedPage:
    """The list of runs, with all its figures."""
    opened.page.locator(".run-table .tabulator-row").first.wait_for()
    opened.page.wait_for_function("() => !document.querySelector('.run-table').textContent.includes('...')")
    return opened


def test_the_list_has_each_run_and_leads_to_its_report(address: str, run_of: RunOf, open_page: OpenPage) -> None:
    opened = settled(open_page(address))
    rows = {
        row.get_by_role("link").text_content(): dict(
            row.locator("[tabulator-field]").evaluate_all(
                "all => all.map((cell) => [cell.getAttribute('tabulator-field'), cell.textContent])"
            )
        )
        for row in opened.page.locator(".run-table .tabulator-row").all()
    }
    summary = summarise(run_of("selene"))
    assert {"selene", "odd-ids"} <= rows.keys()
    assert summary.accuracy is not None
    assert rows["selene"]["state"] == "finished"
    assert rows["selene"]["accuracy"] == percent(summary.accuracy, summary.accuracy_interval, summary.scored)
    assert rows["selene"]["tokens"] == f"{summary.tokens_paid:,}"
    opened.page.get_by_role("link", name="selene", exact=True).click()
    opened.page.locator("h1").filter(has_text="selene").wait_for()
    opened.page.locator("p.strong").filter(has_text=f"All {summary.cases} cases finished.").wait_for()
    assert opened.charts()
    assert all(asked.startswith(address) for asked in opened.requests)


def test_a_link_leads_to_a_case_of_any_name(address: str, open_page: OpenPage) -> None:
    opened = open_page(f"{address}runs/odd-ids/")
    page = opened.page
    for number, case_id in enumerate(ODD_IDS):
        page.goto(f"{address}runs/odd-ids/#case={quote(case_id, safe='')}")
        page.locator("#transcript .question").filter(has_text=f"Is {number} prime?").wait_for()
        assert opened.texts("#transcript h1") == [" ".join(f"Case {case_id}".split())]
    asked = [path for path in opened.requests if "/cases/" in path]
    assert asked == [f"{address}runs/odd-ids/cases/{_in_address(case_id)}.json" for case_id in ODD_IDS]


def _in_address(text: str) -> str:
    """As `encodeURIComponent` writes it."""
    return quote(text, safe="!'()*")


@pytest.fixture
def live(start: Start, tmp_path: Path, apart: Apart) -> Iterator[tuple[str, HostileServer, subprocess.Popen[str]]]:
    """Address of a run under way whose models write hostile texts, until their server's gate opens; its process."""
    server = apart(lambda: HostileServer({}, gated="(?s)^[1-5].*round/1"))
    out = tmp_path / "runs" / NAME
    (tmp_path / "cases.py").write_text(f"CASES = {CASES!r}")
    script = tmp_path / "run.py"
    script.write_text(
        "import moot\nfrom cases import CASES\n"
        f"moot.run(task=CASES, protocol='always-debate', engine='inline', out={str(out)!r}, model={server.model!r})\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: (out / "run.yaml").exists())
            yield address_of(start("view", str(out.parent), "--port", "0")), server, process
        finally:
            process.kill()
            server.gate.set()
            server.close()


def quiet(opened: OpenedPage) -> None:
    """No text has become anything else, and all can be read."""
    page = opened.page
    assert page.locator("svg, img, iframe, [onclick], [onload], a[href^='javascript']").count() == 0
    text = page.evaluate("document.body.innerText")
    assert not CONTROL.search(text)
    assert page.title() != "owned"
    assert not opened.faint()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_run_is_followed_while_it_is_written(
    scheme: str, live: tuple[str, HostileServer, subprocess.Popen[str]], open_page: OpenPage
) -> None:
    address, server, process = live
    opened = open_page(address, width=360, scheme=scheme)
    page = opened.page
    page.locator(".tabulator-row", has=page.get_by_text("live")).get_by_role("link").click()
    page.locator("p.strong").filter(has_text="1 of 6 cases have a verdict").wait_for()
    rows = page.locator("section").filter(has_text="Debates under way").locator("tbody tr")
    page.wait_for_function("() => document.querySelectorAll('section .wide tbody tr').length >= 5")
    assert rows.count() == 5
    quiet(opened)
    assert opened.overflow() <= 0
    rows.first.locator("a").click()
    page.locator("#transcript .turn").nth(2).wait_for()
    before = page.locator("#transcript .turn").count()
    page.locator("#transcript .turn summary").filter(has_text="As sent").first.click()
    quiet(opened)
    assert visible(HOSTILE)[:60] in page.locator("#transcript").text_content()  # type: ignore[operator]
    server.gate.set()
    page.wait_for_function("n => document.querySelectorAll('#transcript .turn').length > n", arg=before)
    assert page.locator("#transcript details[open] summary").filter(has_text="As sent").count() == 1, "it stays open"
    page.locator("#transcript .result").filter(has_not_text="open").wait_for()
    quiet(opened)
    page.go_back()
    page.locator("p.strong").filter(has_text="Finished: 6 of 6 cases have a verdict").wait_for()
    assert process.wait(60) == 0
    page.get_by_role("link", name="Open its report").click()
    page.locator("p.strong").filter(has_text="All 6 cases finished.").wait_for()
