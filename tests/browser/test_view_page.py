"""`moot view` in a browser: from the list to a run, its cases and a debate; and a run under way as it grows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from opened_page import Apart, OpenPage, RunOf, Serve, Start
from planted_records import PlantedSession, extend, plant
from viewed_runs import address_of
from waiting import wait_until

from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.tables import read_table

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_from_the_list_to_a_debate(run_of: RunOf, open_page: OpenPage, serve: Serve, scheme: str, width: int) -> None:
    run = run_of("selene")
    address = serve(run.parent)
    opened = open_page(address, scheme=scheme, width=width)
    page = opened.page
    page.get_by_role("link", name="selene", exact=True).click()
    page.get_by_text("All 72 cases finished.").wait_for()
    page.get_by_role("link", name="All runs").wait_for()
    wrong = {row["case_id"] for row in read_table(run, "verdicts", ["correct"]).to_pylist() if not row["correct"]}
    page.get_by_role("button", name=f"Wrong {len(wrong)}").click()
    page.get_by_text(f"{len(wrong)} of 72 cases shown").wait_for()
    page.get_by_role("searchbox", name="Search").fill(sorted(wrong)[0])
    page.get_by_text("1 of 72 cases shown").wait_for()
    page.get_by_role("searchbox", name="Search").fill("")
    page.get_by_role("button", name="All 72").click()
    rounds = read_table(run, "verdicts", ["rounds"]).to_pylist()
    long = {row["case_id"] for row in rounds if row["rounds"] >= 2}
    page.get_by_label("Filter by Rounds").fill(">= 2")
    page.get_by_text(f"{len(long)} of 72 cases shown").wait_for()
    page.get_by_label("Filter by Outcome").fill("wrong")
    page.get_by_text(f"{len(long & wrong)} of 72 cases shown").wait_for()
    page.get_by_label("Filter by Outcome").fill("")
    page.get_by_label("Filter by Rounds").fill("")
    page.get_by_text("72 of 72 cases shown").wait_for()
    page.get_by_role("searchbox", name="Search").fill(sorted(wrong)[0])
    page.get_by_text("1 of 72 cases shown").wait_for()
    page.get_by_role("link", name=sorted(wrong)[0]).first.click()
    page.get_by_role("heading", name=f"Case {sorted(wrong)[0]}").wait_for()
    assert page.get_by_text("✗ wrong").count()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert all(request.startswith(address) for request in opened.requests)


def test_runs_of_the_list_are_sorted_filtered_and_compared(run_of: RunOf, open_page: OpenPage, serve: Serve) -> None:
    runs = [run_of("selene"), run_of("selene-seed1")]
    address = serve(runs[0].parent)
    opened = open_page(address, width=360)
    page = opened.page
    accuracy = page.locator(".tabulator-row", has=page.get_by_role("link", name="selene", exact=True)).get_by_text(
        "(n = 72)"
    )
    accuracy.wait_for()
    assert accuracy.evaluate("cell => cell.getBoundingClientRect().right") <= 360
    assert opened.overflow() <= 0
    page.get_by_label("Filter by Run").fill("selene")
    page.get_by_role("columnheader", name="Run").locator(".tabulator-col-title").click()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.run-table a')].map((a) => a.text).join() === 'selene,selene-seed1'"
    )
    for run in runs:
        page.get_by_label(f"Compare {run.name}", exact=True).check()
    page.get_by_role("link", name="Report of the 2 chosen runs (compared with selene)").click()
    page.get_by_role("heading", name="Comparison").wait_for()
    page.get_by_role("link", name="All runs").wait_for()


def test_the_list_says_how_many_cases_failed(tmp_path: Path, apart: Apart, open_page: OpenPage, serve: Serve) -> None:
    session = PlantedSession()
    for case in ("one", "two"):
        session.case(case)
        session.verdict(case, None, "failed", failure="timeout")
    settings = {"schema_version": 1, "cases": 2, "sessions": [{"status": "finished"}]}
    run = apart(lambda: plant(tmp_path / "runs" / "failed", [session], settings))
    address = serve(run.parent)
    cells = open_page(address).page.get_by_role("gridcell")
    cells.get_by_text("finished, 2 failed").wait_for()
    assert [text for text in cells.all_inner_texts() if "failed" in text] == ["failed", "finished, 2 failed"]


def test_a_run_under_way_grows_and_is_stopped(tmp_path: Path, open_page: OpenPage, serve: Serve) -> None:
    out = tmp_path / "runs" / "live"
    command = [sys.executable, "-m", "moot", "run", "--engine", "inline", "--quiet", "--out", str(out)]
    command += ["--model", "simulated?latency_ms=300", "--max-open", "4"]
    (tmp_path / "runs").mkdir()
    address = serve(tmp_path / "runs")
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until((out / "run.yaml").exists)
            opened = open_page(f"{address}runs/live/")
            page = opened.page
            bar = page.get_by_role("progressbar")
            page.wait_for_function("() => document.querySelector('progress').value >= 4")
            assert bar.get_attribute("max") == "72"
            assert page.get_by_role("button", name="All 72").count() == 1, "those that have not begun included"
            assert "simulated models" in opened.texts("p.warning")[0]
            page.wait_for_function("() => document.querySelector('#chart-live-accuracy canvas')")
            before = page.evaluate("() => document.querySelector('progress').value")
            page.wait_for_function(f"() => document.querySelector('progress').value > {before}")
            page.locator("section a[href^='#case=']").first.click()
            page.locator("#transcript article.turn").first.wait_for()
            page.go_back()
            page.get_by_role("button", name="Stop after what is under way").click()
            page.get_by_text("Interrupted: ").wait_for()
            assert re.search(r"Accuracy: .* The same command resumes it\.$", opened.texts("p.strong")[0])
            assert process.wait(60) == 130
            page.get_by_role("link", name="Open its report").click()
            page.get_by_text("the run is not complete").wait_for()
        finally:
            process.kill()


def test_a_server_that_has_died_is_said_in_the_first_line(tmp_path: Path, start: Start, open_page: OpenPage) -> None:
    slow = ("--engine", "inline", "--quiet", "--watch", "--model", "simulated?latency_ms=300", "--max-open", "4")
    process = start("run", *slow, "--out", str(tmp_path / "run"))
    opened = open_page(address_of(process))
    opened.page.get_by_text("Under way: ").wait_for()
    process.kill()
    opened.page.get_by_text("The server does not answer. The figures are those of ").wait_for()
    assert opened.page.get_by_role("button", name="Stop").is_disabled()
    assert "time left" not in opened.texts(".live-facts dt")
    opened.page.close()  # an open page asks the ended server again
    opened.said.clear()  # the browser's own errors of a broken connection


def test_a_record_that_breaks_while_it_is_followed_is_no_run_that_has_ended(
    tmp_path: Path, apart: Apart, open_page: OpenPage, serve: Serve
) -> None:
    session = PlantedSession(compacts=False)
    session.case("open")
    session.reply("open", "opening/agent/0", 1_000)
    session.reply("open", "round/1/agent/0", None)
    run = apart(lambda: plant(tmp_path / "runs" / "broken", [], {"schema_version": 1, "cases": 2}))
    address = serve(run.parent)
    owner = Ownership.acquire(RunFolder(run))
    try:
        apart(lambda: extend(run, session, owner))
        opened = open_page(address)
        opened.page.get_by_role("gridcell", name="at least 1,000").wait_for()
        opened.page.get_by_role("link", name="broken").click()
        opened.page.get_by_text("Round 1, agent 0").wait_for()
        facts = dict(zip(opened.texts(".live-facts dt"), opened.texts(".live-facts dd"), strict=True))
        assert facts["tokens"] == "at least 1,000"
        (run / "parts").mkdir(exist_ok=True)
        (run / "parts" / "e000001-w00-r0000.json").write_text("{")
        opened.page.get_by_text("The record can no longer be followed").wait_for()
        assert "cannot be read" in opened.texts("p.warning[role=status]")[0]
    finally:
        owner.release()
