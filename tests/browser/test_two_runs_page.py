"""The report of two runs in a browser: their difference, the cases that differ, and transcripts side by side."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hostile_texts import NAME
from opened_page import OpenedPage, OpenPage, RunOf

from moot.deploy.results.figures.comparison import DifferingCase, compare, differing_cases
from moot.deploy.results.run_report.report import build_report
from moot.deploy.results.text import visible

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]


@pytest.fixture(scope="module")
def runs(run_of: RunOf, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and one of another seed whose name wants to be more than a name."""
    other = tmp_path_factory.mktemp("runs") / NAME
    shutil.copytree(run_of("selene-seed1"), other)
    return run_of("selene"), other


@pytest.fixture(scope="module")
def page_file(runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("reports") / "both.html"
    file.write_text(build_report(*runs).html(), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def differing(runs: tuple[Path, Path]) -> dict[str, DifferingCase]:
    return {case.case_id: case for case in differing_cases(runs)}


def with_table(opened: OpenedPage) -> OpenedPage:
    """The page, with its table of cases in view."""
    opened.page.locator("#cases").scroll_into_view_if_needed()
    opened.page.locator(".tabulator-row").first.wait_for()
    return opened


def test_its_difference_is_that_of_the_comparison(
    page_file: Path, runs: tuple[Path, Path], open_page: OpenPage
) -> None:
    opened = open_page(page_file)
    pair = compare(runs).rows[1].vs_first
    assert pair is not None
    assert pair.difference is not None
    points = opened.charts()["chart-paired-differences"]
    drawn = next((x, y) for _, x, y in points if y is not None)
    assert drawn == (visible(NAME), pytest.approx(pair.difference, rel=1e-3))
    assert opened.page.locator("main svg").count() == 0
    assert opened.requests == [page_file.as_uri()]


def test_cases_that_differ_are_chosen_and_read_side_by_side(
    page_file: Path, differing: dict[str, DifferingCase], open_page: OpenPage
) -> None:
    opened = with_table(open_page(page_file))
    page = opened.page
    page.get_by_role("button", name=f"Runs differ {len(differing)}").click()
    page.get_by_text(f"{len(differing)} of 72 cases shown").wait_for()
    shown = opened.texts(".tabulator-row .tabulator-cell[tabulator-field=case]")
    assert set(shown) <= differing.keys()
    page.get_by_role("columnheader", name=f"Answer: {visible(NAME)}").hover()
    page.locator(".tabulator-tooltip").filter(has_text="svg onload").wait_for()
    page.locator(".tabulator-row a").first.click()
    page.locator("#transcript .side-by-side").wait_for()
    answers = [f"Answer: {each.answer} · Gold: {differing[shown[0]].gold}" for each in differing[shown[0]].answers]
    assert [text.split(" ", 2)[2].strip() for text in opened.texts("#transcript .result")] == answers
    assert visible(NAME) in opened.texts("#transcript .run > h2")[1]
    assert page.locator("#transcript svg").count() == 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_it_is_legible_and_fits(
    scheme: str, width: int, page_file: Path, differing: dict[str, DifferingCase], open_page: OpenPage
) -> None:
    opened = with_table(open_page(page_file, scheme=scheme, width=width))
    for place in ("", f"#case={next(iter(differing))}"):
        opened.page.evaluate("place => { location.hash = place; }", place)
        opened.page.locator("#transcript h1" if place else "#report h1").wait_for()
        opened.unfold()
        assert not opened.faint()
        assert opened.overflow() <= 0
