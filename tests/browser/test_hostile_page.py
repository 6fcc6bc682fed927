"""Texts of models and data sets stay texts in a browser, wherever they are shown: none becomes an element, a script, a
link or a command to the reader's eyes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hostile_texts import CASES, HOSTILE, NAME, HostileServer
from opened_page import Apart, OpenedPage, OpenPage, ReportOf
from planted_records import CONTROL

import moot
from moot.deploy.results.run_report.report import build_report
from moot.deploy.results.text import visible

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]

PROTOCOLS = ("selene", "evince", "constructor-auditor", "always-debate")

# Elements by name, attributes that could act, and all that can be read: texts, attributes, fields, the window's title.
_FOUND = """() => {
  const all = [...document.querySelectorAll("*")];
  const of = (each) => [...each.attributes].map(({ name, value }) => [each.localName, name, value]);
  const attributes = all.flatMap(of);
  const texts = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!["script", "style", "noscript"].includes(node.parentElement.localName)) texts.push(node.data);
  }
  return { names: all.map((each) => each.localName), attributes, texts: texts.join("\\n") };
}"""


def check(opened: OpenedPage, known: Counter[str]) -> str:
    """Nothing in the page but what a page without such texts has; what is to be read."""
    found: dict[str, Any] = opened.page.evaluate(_FOUND)
    names = Counter(found["names"])
    for name in (
        "script",
        "style",
        "iframe",
        "img",
        "svg",
        "object",
        "embed",
        "link",
        "base",
        "form",
        "meta",
        "template",
    ):
        assert names[name] == known[name], name
    for element, name, value in found["attributes"]:
        assert not name.startswith("on"), (element, name)
        assert name not in ("src", "srcdoc", "action", "formaction"), (element, name)
        assert name != "href" or value.startswith("#"), (element, value)
        assert not CONTROL.search(value), (element, name, value)
    text: str = found["texts"]
    assert not CONTROL.search(text)
    assert opened.page.title().startswith("moot report")
    assert opened.page.locator("body").is_visible()
    return text


@pytest.fixture
def known(report_of: ReportOf, open_page: OpenPage) -> Counter[str]:
    """The elements of a page without such texts."""
    return Counter(open_page(report_of("selene")).page.evaluate(_FOUND)["names"])


@pytest.fixture
def written(apart: Apart, tmp_path: Path) -> Any:
    """Makes the report of a run of some cases whose models and data write hostile texts."""

    def make(protocol: str, cases: list[dict[str, Any]], added: str = HOSTILE) -> Path:
        def run() -> Path:
            server = HostileServer({})
            server.added = added
            try:
                out = tmp_path / NAME
                return moot.run(task=cases, protocol=protocol, engine="inline", out=out, model=server.model).path
            finally:
                server.close()

        page = tmp_path / "report.html"
        page.write_text(build_report(apart(run)).html(), encoding="utf-8")
        return page

    return make


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_hostile_texts_are_shown_as_texts(
    protocol: str, written: Any, known: Counter[str], open_page: OpenPage
) -> None:
    opened = open_page(written(protocol, CASES))
    page = opened.page
    opened.charts()
    opened.unfold()
    page.locator("#cases").scroll_into_view_if_needed()
    page.locator(".tabulator-row").first.wait_for()
    assert "<svg onload=alert(7)> <U+202E>" in check(opened, known), "the run's name"
    page.locator("#case-search").fill("0 [bold red]x[/]")
    page.locator("#cases [role=status]").filter(has_text="1 of").wait_for()
    page.locator(".tabulator-row a").first.click()
    page.locator("#transcript h1").wait_for()
    opened.unfold()
    text = check(opened, known)
    for kept in (
        "<script>document.title='owned'</script>",
        "<img src=x onerror=alert(1)>",
        "javascript:alert(2)",
        "\u241b[2J",
    ):
        assert kept in text
    assert text.count(visible(HOSTILE)) > 3
    if tokens := page.locator(".tokens .token").all():
        tokens[-1].hover()
        assert page.locator("#token-tip").is_visible()
        check(opened, known)
    assert opened.overflow() <= 0
    assert len(opened.requests) == 1


def test_a_megabyte_in_one_reply(written: Any, known: Counter[str], open_page: OpenPage) -> None:
    added = HOSTILE * (2**20 // len(HOSTILE))
    opened = open_page(written("single-agent", CASES[:1], added))
    page = opened.page
    page.locator("#cases").scroll_into_view_if_needed()
    page.locator(".tabulator-row a").first.click()
    page.locator("#transcript h1").wait_for()
    assert 100_000 < len(check(opened, known)) < 2**20, "the beginning, and a line on the rest"
    assert opened.overflow() <= 0
