"""The report of a run in a browser: it opens from disk, says what the record says, and can be read by anybody."""

from __future__ import annotations

import pytest
from opened_page import OpenedPage, OpenPage, ReportOf, RunOf

from moot.actors.record.tables import read_table
from moot.deploy.results.figures.summary import summarise, summary_rows
from moot.deploy.results.text import count, percent

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]

PROTOCOLS = ("selene", "evince", "constructor-auditor", "ceda", "socrasynth")
SCHEMES = ("light", "dark")


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_report_opens_from_disk_and_asks_for_nothing(protocol: str, report_of: ReportOf, open_page: OpenPage) -> None:
    report = report_of(protocol)
    opened = open_page(report)
    assert opened.charts()
    assert opened.requests == [report.as_uri()]
    assert report.stat().st_size < 2_000_000


def test_its_figures_are_those_of_the_record(
    protocol: str, run_of: RunOf, report_of: ReportOf, open_page: OpenPage
) -> None:
    run, opened = run_of(protocol), open_page(report_of(protocol))
    shown = dict(zip(opened.texts("main dt"), opened.texts("main dd"), strict=True))
    summary = summarise(run)
    assert {name: " ".join(text.split()) for name, text in summary_rows(summary)}.items() <= shown.items()
    verdicts = read_table(run, "verdicts", ["correct"])["correct"].to_pylist()
    assert shown["cases"].startswith(f"{count(len(verdicts))}: ")
    scored = [correct for correct in verdicts if correct is not None]
    if scored:
        answer = percent(sum(scored) / len(scored), summary.accuracy_interval, len(scored), summary.scored_groups)
        assert shown["accuracy"] == answer
        assert answer in opened.texts("p.strong")[0]
    assert "simulated models" in opened.texts("p.warning")[0]


def test_charts_draw_the_numbers_of_their_tables(protocol: str, report_of: ReportOf, open_page: OpenPage) -> None:
    opened = open_page(report_of(protocol))
    for anchor, drawn in opened.charts().items():
        table = opened.rows(f"[id='{anchor}'] table")
        assert table, anchor
        for series in {row[0] for row in table}:  # a band has ends, but no values
            known = [row for row in table if row[0] == series and row[2] != "unknown"]
            points = [point for point in drawn if point[0] == series and point[2] is not None]
            assert len(points) >= len(known), anchor
            for (_, x, y), (_, place, value, *_) in zip(points, known, strict=False):
                assert _number(x) == _number(place), anchor
                assert y == pytest.approx(float(value), abs=6e-4, rel=1e-3), anchor


def _number(x: object) -> object:
    """As a table writes it."""
    try:
        return pytest.approx(float(x), abs=6e-4, rel=1e-3)  # type: ignore[arg-type]
    except ValueError:
        return x


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_is_legible(protocol: str, scheme: str, report_of: ReportOf, open_page: OpenPage) -> None:
    opened = open_page(report_of(protocol), scheme=scheme)
    opened.unfold()
    assert not opened.faint()


def test_a_page_changes_with_the_colour_scheme(report_of: ReportOf, open_page: OpenPage) -> None:
    opened = open_page(report_of("selene"))
    colours = [_colours(opened)]
    opened.page.emulate_media(color_scheme="dark")
    colours.append(_colours(opened))
    assert {page for page, _ in colours} == {"rgb(255, 255, 255)", "rgb(22, 24, 28)"}
    assert colours[0][1] != colours[1][1], "charts are drawn in other colours"


def _colours(opened: OpenedPage) -> tuple[str, str]:
    opened.charts()
    page: str = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    line: str = opened.page.evaluate("Chart.getChart(document.querySelector('canvas')).options.scales.x.grid.color")
    return page, line


def test_a_narrow_window_needs_no_scrolling_sideways(protocol: str, report_of: ReportOf, open_page: OpenPage) -> None:
    opened = open_page(report_of(protocol), width=360)
    opened.charts()
    opened.unfold()
    assert opened.overflow() <= 0


def test_headings_tables_and_names_lead_who_cannot_see(protocol: str, report_of: ReportOf, open_page: OpenPage) -> None:
    page = open_page(report_of(protocol)).page
    levels = page.evaluate("[...document.querySelectorAll('main :is(h1, h2, h3)')].map((each) => +each.tagName[1])")
    assert levels.count(1) == 1
    assert levels[0] == 1
    figures = page.locator("figure.chart")
    for figure in figures.all():
        assert figure.locator("canvas").get_attribute("aria-label")
        assert figure.locator("table th[scope=col]").count() >= 3
    nameless = "[...document.querySelectorAll('button, input, select, a, summary, [role=region]')].filter((each) => "
    nameless += "!(each.textContent.trim() || each.getAttribute('aria-label') || each.labels?.length))"
    assert page.evaluate(f"{nameless}.map((each) => each.outerHTML.slice(0, 120))") == []


def test_tab_leads_past_the_links_to_what_can_be_opened(report_of: ReportOf, open_page: OpenPage) -> None:
    page = open_page(report_of("selene")).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    assert page.locator(".skip").bounding_box()["x"] >= 0  # type: ignore[index]
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_links_lead_to_parts(report_of: ReportOf, open_page: OpenPage) -> None:
    page = open_page(report_of("selene")).page
    for link in page.locator("nav a").all():
        link.click()
        top = page.evaluate("document.querySelector(location.hash).getBoundingClientRect().top")
        header = page.locator("header").bounding_box()
        assert header is not None
        assert header["height"] <= top < 900


# What is cut on paper: elements that would have to be scrolled.
_CUT = """() => [...document.querySelectorAll("main *, article *")].filter((each) =>
  each.checkVisibility() && each.tagName !== "SUMMARY" && getComputedStyle(each).overflowX !== "visible"
  && (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1))
  .map((each) => `${each.tagName}.${each.className}`)"""


@pytest.mark.parametrize(
    ("run", "case"), [("selene", ""), ("selene", "#case=sample-002"), ("evince", "#case=complaint-02")]
)
def test_it_prints_whole_and_light(run: str, case: str, report_of: ReportOf, open_page: OpenPage) -> None:
    opened = open_page(report_of(run), case, scheme="dark", width=718)  # A4 with margins of a centimetre
    page = opened.page
    page.locator("#transcript h1" if case else "main h1").wait_for()
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") > 2
    page.emulate_media(media="print", color_scheme="light")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert not page.evaluate(_CUT)
    assert opened.overflow() <= 0
    assert not opened.faint()
    if not case:
        assert page.evaluate("[...document.querySelectorAll('canvas')].every((canvas) => Chart.getChart(canvas))")
        assert page.locator(".printed tbody tr").count() == 72


def test_charts_are_printed_in_the_colours_of_paper(report_of: ReportOf, open_page: OpenPage) -> None:
    opened = open_page(report_of("selene"), scheme="dark")
    _, dark = _colours(opened)
    colours = []
    for event in ("beforeprint", "afterprint"):
        opened.page.evaluate("event => { window.dispatchEvent(new Event(event)); }", event)
        colours.append(_colours(opened)[1])
    assert colours[0] != dark
    assert colours[1] == dark
