"""The table of cases and the transcripts: they say what the record says, and open by mouse, key and link."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any
from urllib.parse import quote

import pytest
from not_none import not_none
from opened_page import ODD_IDS, OpenedPage, OpenPage, ReportOf, RunOf

from moot.actors.record.tables import read_table

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]


FIELDS = """() => [...document.querySelectorAll(".tabulator-row")].map((row) => Object.fromEntries(
  [...row.querySelectorAll("[tabulator-field]")].map((cell) => [cell.getAttribute("tabulator-field"), cell.textContent])
))"""


def cases_of(opened: OpenedPage) -> OpenedPage:
    """The page, with its table of cases in view."""
    opened.page.locator("#cases").scroll_into_view_if_needed()
    opened.page.locator(".tabulator-row").first.wait_for()
    return opened


def shown(opened: OpenedPage) -> str:
    """How many cases the page says it shows."""
    return opened.texts("#cases [role=status]")[0]


def ids(opened: OpenedPage) -> list[str]:
    """The cases in those rows that the table has made, in order."""
    return opened.texts(".tabulator-row .tabulator-cell[tabulator-field=case]")


@pytest.fixture
def verdicts(run_of: RunOf) -> dict[str, dict[str, Any]]:
    rows = read_table(run_of("selene"), "verdicts").to_pylist()
    return {row["case_id"]: row for row in rows}


@pytest.fixture
def table(report_of: ReportOf, open_page: OpenPage) -> OpenedPage:
    return cases_of(open_page(report_of("selene")))


def test_the_table_has_every_case_with_its_verdict(table: OpenedPage, verdicts: dict[str, dict[str, Any]]) -> None:
    page = table.page
    assert shown(table) == f"{len(verdicts)} of {len(verdicts)} cases shown"
    seen: dict[str, dict[str, str]] = {}
    page.locator(".tabulator-row a").first.focus()
    for _ in range(len(verdicts) // 10 + 1):
        seen |= {cells["case"]: cells for cells in page.evaluate(FIELDS) if cells}
        page.keyboard.press("PageDown")
    assert seen.keys() == verdicts.keys()
    for case_id, verdict in verdicts.items():
        cells = seen[case_id]
        assert cells["outcome"].split()[1] == ("right" if verdict["correct"] else "wrong")
        assert (cells["answer"], cells["rounds"]) == (verdict["answer"], str(verdict["rounds"]))
        assert cells["tokens"] == f"{verdict['prompt_tokens'] + verdict['completion_tokens']:,}"
        assert float(cells["confidence"]) == pytest.approx(verdict["confidence"], abs=6e-4)


def test_buttons_choose_right_wrong_and_debated(table: OpenedPage, verdicts: dict[str, dict[str, Any]]) -> None:
    counts = Counter(row["correct"] for row in verdicts.values())
    debated = {case_id for case_id, row in verdicts.items() if row["rounds"]}
    buttons = table.texts("#cases .buttons button")
    assert buttons == [
        f"All {len(verdicts)}",
        f"Right {counts[True]}",
        f"Wrong {counts[False]}",
        f"Debated {len(debated)}",
    ]
    table.page.get_by_role("button", name="Wrong").click()
    assert shown(table).startswith(f"{counts[False]} of ")
    assert set(ids(table)) == {case_id for case_id, row in verdicts.items() if not row["correct"]}
    table.page.get_by_role("button", name="Debated").click()
    assert shown(table).startswith(f"{len(debated)} of ")
    assert set(ids(table)) <= debated


def test_words_and_numbers_are_searched(table: OpenedPage, verdicts: dict[str, dict[str, Any]]) -> None:
    page, status = table.page, table.page.locator("#cases [role=status]")
    search = page.locator("#case-search")
    search.fill("SAMPLE-007")
    status.filter(has_text="1 of 72").wait_for()
    assert ids(table) == ["sample-007"]
    search.fill("<none>")
    status.filter(has_text="0 of 72").wait_for()
    assert "No case is like this." in table.texts("#cases")[0]
    search.fill("")
    status.filter(has_text="72 of 72").wait_for()
    page.locator(".tabulator-col[tabulator-field=rounds] input").press_sequentially(">= 2")
    long = {case_id for case_id, row in verdicts.items() if row["rounds"] >= 2}
    status.filter(has_text=re.compile(rf"\b{len(long)} of 72")).wait_for()
    assert set(ids(table)) <= long
    page.locator(".tabulator-col[tabulator-field=rounds] input").fill("")
    status.filter(has_text="72 of 72").wait_for()
    shown_number = table.texts(".tabulator-row .tabulator-cell[tabulator-field=confidence]")[0]
    page.locator(".tabulator-col[tabulator-field=confidence] input").press_sequentially(shown_number)
    same = {c for c, row in verdicts.items() if abs(row["confidence"] - float(shown_number)) < 6e-4}
    status.filter(has_text=re.compile(rf"\b{len(same)} of 72")).wait_for()  # 2 is no part of 72
    assert set(ids(table)) == same


@pytest.mark.parametrize("protocol", ["selene", "evince"])
def test_no_title_is_cut_and_a_filtered_table_is_no_higher_than_its_rows(
    protocol: str, report_of: ReportOf, open_page: OpenPage
) -> None:
    page = cases_of(open_page(report_of(protocol))).page
    titles = "[...document.querySelectorAll('.tabulator-col-title')]"
    assert not page.evaluate(
        f"{titles}.filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"
    )
    height = "document.querySelector('.tabulator').clientHeight"
    whole = page.evaluate(height)
    page.locator("#case-search").fill(page.locator(".tabulator-row a").first.text_content() or "")
    page.locator("#cases [role=status]").filter(has_text="1 of").wait_for()
    assert page.locator(".tabulator-row").first.is_visible()
    assert page.evaluate(height) < min(whole, 160)


def test_a_columns_title_sorts(table: OpenedPage, verdicts: dict[str, dict[str, Any]]) -> None:
    tokens = sorted(row["prompt_tokens"] + row["completion_tokens"] for row in verdicts.values())
    title = table.page.locator(".tabulator-col[tabulator-field=tokens] .tabulator-col-title")
    for order in (tokens, tokens[::-1]):
        title.click()
        found = [
            int(text.replace(",", "")) for text in table.texts(".tabulator-row .tabulator-cell[tabulator-field=tokens]")
        ]
        assert found == order[: len(found)]


def test_a_case_opens_with_its_whole_transcript(
    table: OpenedPage, verdicts: dict[str, dict[str, Any]], run_of: RunOf
) -> None:
    case_id = next(case_id for case_id, row in verdicts.items() if row["rounds"] >= 2)
    page = table.page
    page.locator("#case-search").fill(case_id)
    page.locator("#cases [role=status]").filter(has_text="1 of").wait_for()
    page.locator(".tabulator-row").click()
    page.locator("#transcript h1").wait_for()
    assert page.url.endswith(f"#case={case_id}")
    assert table.texts("#transcript h1") == [f"Case {case_id}"]
    assert not page.locator("#report").is_visible()
    table.unfold()
    text = " ".join(page.locator("#transcript").text_content().split())  # type: ignore[union-attr]
    for row in read_table(run_of("selene"), "turns", ["text"]).to_pylist():
        if row["case_id"] == case_id:
            assert " ".join(row["text"].split()) in text, row["path"]
    verdict = verdicts[case_id]
    assert f"Answer: {verdict['answer']} · Gold: " in text


def test_back_leads_to_where_the_table_was(table: OpenedPage) -> None:
    page = table.page
    page.get_by_role("button", name="Wrong").click()
    wrong, before = ids(table), page.evaluate("window.scrollY")
    page.locator(".tabulator-row a").nth(2).click()
    page.locator("#transcript h1").wait_for()
    page.get_by_role("link", name="Next case").first.click()
    page.locator("#transcript h1").filter(has_text=wrong[3]).wait_for()
    page.go_back()
    page.locator("#transcript h1").filter(has_text=wrong[2]).wait_for()
    page.go_back()
    page.locator("#report").wait_for()
    assert (ids(table), page.evaluate("window.scrollY")) == (wrong, before)
    page.wait_for_function("id => document.activeElement.textContent === id", arg=wrong[2])


def test_the_parts_are_reached_from_a_transcript(report_of: ReportOf, open_page: OpenPage) -> None:
    page = open_page(report_of("selene"), "#case=sample-003").page
    page.locator("#transcript h1").wait_for()
    page.locator("nav a").nth(1).click()
    page.locator("#report").wait_for()
    top = page.evaluate("document.querySelector(location.hash).getBoundingClientRect().top")
    assert 0 <= top < 300


def test_the_keyboard_is_enough(table: OpenedPage) -> None:
    page = table.page
    page.locator("#case-search").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.tabulator-row') !== null"):
            break
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "sample-001"
    for key, expected in (
        ("ArrowDown", 2),
        ("ArrowDown", 3),
        ("ArrowUp", 2),
        ("PageDown", 12),
        ("End", 72),
        ("Home", 1),
    ):
        page.keyboard.press(key)
        page.wait_for_function(f"id => {focused} === id", arg=f"sample-{expected:03}")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("#transcript h1").filter(has_text="sample-002").wait_for()
    assert page.evaluate("document.activeElement.id") == "transcript"
    page.keyboard.press("Escape")
    page.locator("#report").wait_for()
    page.wait_for_function(f"() => {focused} === 'sample-002'")


def test_a_link_leads_to_a_case_of_any_name(report_of: ReportOf, open_page: OpenPage) -> None:
    report = report_of("odd-ids")
    opened = open_page(report)
    page, question = opened.page, opened.page.locator("#transcript .question")
    for number, case_id in enumerate(ODD_IDS):
        page.goto(f"{report.as_uri()}#case={quote(case_id, safe='')}")
        question.filter(has_text=f"Is {number} prime?").wait_for()
        assert opened.texts("#transcript h1") == [" ".join(f"Case {case_id}".split())]
        page.get_by_role("link", name="All cases").first.click()
        page.locator(f".tabulator-row >> nth={number}").locator("a").click()
        question.filter(has_text=f"Is {number} prime?").wait_for()
        page.go_back()


@pytest.mark.parametrize("fragment", ["#case=nobody", "#case=%", "#case=", "#case=constructor", "#nothing"])
def test_a_link_to_no_case_says_so(fragment: str, report_of: ReportOf, open_page: OpenPage) -> None:
    opened = open_page(report_of("selene"), fragment)
    if "case=" in fragment:
        opened.page.locator("#transcript .warning").wait_for()
        assert "no case of this name" in opened.texts("#transcript .warning")[-1]
    assert opened.page.locator("#report").is_visible() == ("case=" not in fragment)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("protocol", ["selene", "evince", "constructor-auditor", "ceda", "socrasynth"])
def test_a_transcript_is_legible_and_fits_a_narrow_window(
    protocol: str, scheme: str, run_of: RunOf, report_of: ReportOf, open_page: OpenPage
) -> None:
    rows = read_table(run_of(protocol), "verdicts", ["rounds"]).to_pylist()
    longest = max(rows, key=lambda row: row["rounds"] or 0)["case_id"]
    opened = open_page(report_of(protocol), f"#case={quote(longest)}", scheme=scheme, width=360)
    opened.page.locator("#transcript h1").wait_for()
    for _ in range(3):  # what is opened may hold more to open
        opened.unfold()
        opened.page.wait_for_timeout(30)
    assert not opened.faint()
    assert opened.overflow() <= 0


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("agent", [0, 2])
def test_messages_as_sent_have_the_width_of_the_transcript(
    width: int, agent: int, report_of: ReportOf, open_page: OpenPage
) -> None:
    opened = open_page(report_of("selene"), "#case=sample-014", width=width)
    card = opened.page.locator("#transcript .agents").first.locator(".turn").nth(agent)
    summary = card.locator(".sent summary")
    summary.click()
    message = card.locator(".sent pre").first
    message.wait_for()
    places = (opened.page.locator("#transcript"), message, summary)
    whole, found, at = (not_none(place.bounding_box()) for place in places)
    assert found["width"] > whole["width"] - 40
    assert 0 <= at["y"] < 900, "what was clicked stays in view"
    assert opened.overflow() <= 0


def test_tokens_show_their_alternatives(report_of: ReportOf, open_page: OpenPage) -> None:
    opened = open_page(report_of("constructor-auditor"), "#case=sample-003")
    page = opened.page
    page.locator("#transcript h1").wait_for()
    opened.unfold()
    token = page.locator(".tokens .token").first
    token.hover()
    rows = opened.rows("#token-tip table")
    assert rows[0][1].endswith("(chosen)")
    assert 0 <= float(rows[0][0].removeprefix("< ")) <= 1
    token.focus()
    page.keyboard.press("ArrowRight")
    assert opened.rows("#token-tip table") != rows
    page.keyboard.press("Escape")
    assert page.locator("#token-tip").is_hidden()
    assert page.locator("#transcript").is_visible()
