"""The pictures of the documentation, made where MOOT_SCREENSHOTS names their folder: `docs/images`."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from opened_page import Apart, OpenedPage, OpenPage
from PIL import Image
from viewed_runs import viewed
from waiting import wait_until

import moot
from moot.deploy.results.run_report.report import build_report

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]

MOST_BYTES = 120_000
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return Path(os.environ.get("MOOT_SCREENSHOTS", tmp_path)).resolve()


def keep(opened: OpenedPage, path: Path, selector: str = "") -> None:
    """Write what is in the window, or an element, with few colours: they are enough for a page."""
    shown = opened.page.locator(selector).first if selector else opened.page
    picture = Image.open(io.BytesIO(shown.screenshot(animations="disabled")))
    picture.convert("RGB").quantize(96, dither=Image.Dither.NONE).save(path.with_suffix(".png"), optimize=True)
    assert path.with_suffix(".png").stat().st_size < MOST_BYTES


def test_screenshots_of_the_documentation(
    images: Path, tmp_path: Path, apart: Apart, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # so that no folder of this machine is in a title
    runs = {"demo": "selene", "alone": "single-agent", "panel": "majority-vote"}
    for name, protocol in runs.items():
        apart(partial(moot.run, protocol=protocol, engine="inline", out=f"runs/{name}"))
    one, two = tmp_path / "demo.html", tmp_path / "both.html"
    one.write_text(build_report("runs/demo").html(), encoding="utf-8")
    two.write_text(build_report("runs/demo", "runs/alone").html(), encoding="utf-8")

    opened = open_page(one)
    keep(opened, images / "report-overview")
    opened.charts()
    keep(opened, images / "report-gate", "figure.chart[id*=gate], figure.chart[id*=plane]")
    opened.page.get_by_role("button", name="Wrong").click()
    opened.page.locator("#cases h2, #cases").first.scroll_into_view_if_needed()
    opened.page.locator(".tabulator-row").first.wait_for()
    keep(opened, images / "report-cases")
    keep(at_answers(open_page(one, "#case=sample-002")), images / "report-transcript")
    keep(at_answers(open_page(one, "#case=sample-002", scheme="dark")), images / "report-dark")
    keep(open_page(one, width=360), images / "report-narrow")

    opened = open_page(two)
    opened.charts()
    keep(opened, images / "report-compared", "#chart-paired-differences")

    command = [sys.executable, "-m", "moot", "run", "--engine", "inline", "--quiet", "--out", "runs/live"]
    command += ["--protocol", "evince", "--task", "sample-symptoms"]
    command += ["--model", "simulated?latency_ms=100", "--max-open", "6"]
    with viewed(Path("runs")) as address, subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_until(Path("runs/live/run.yaml").exists)
        opened = open_page(f"{address}runs/live/")
        opened.page.wait_for_function("() => document.querySelector('progress')?.value >= 20")
        opened.page.set_viewport_size({"width": 1280, "height": 1560})  # down to the divergences
        opened.charts()
        opened.page.evaluate("() => window.scrollTo(0, 0)")
        keep(opened, images / "view-live")
        opened.page.goto(address)
        opened.page.wait_for_function("() => document.querySelectorAll('.run-table .tabulator-row').length === 4")
        opened.page.wait_for_function("() => !document.querySelector('.run-table').textContent.includes('...')")
        keep(opened, images / "view-runs", ".run-table")
        process.kill()
        opened.page.goto("about:blank")  # a list asks again and again
    named = set(re.findall(r"\(\S*images/(\S+?\.png)\)", "".join(page.read_text() for page in DOCS.rglob("*.md"))))
    assert {path.name for path in images.glob("*.png")} >= named > set(), "each picture of the documentation is made"


def at_answers(opened: OpenedPage) -> OpenedPage:
    """A transcript, from its first answers on."""
    opened.page.locator("#transcript .stage").first.wait_for()
    opened.page.locator("#transcript .result").evaluate("each => window.scrollTo(0, each.offsetTop - 60)")
    return opened
