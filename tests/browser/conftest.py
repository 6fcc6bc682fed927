"""A browser, the pages that it opens, and the runs that they show."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opened_page import ODD_IDS, Apart, OpenedPage, OpenPage, ReportOf, RunOf, Serve, Start
from viewed_runs import viewed

import moot
from moot.deploy.results.run_report.report import build_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RUNS: dict[str, dict[str, Any]] = {
    "selene": {"task": "sample", "protocol": "selene"},
    "selene-seed1": {"task": "sample", "protocol": "selene", "seed": 1},
    "evince": {"task": "sample-symptoms", "protocol": "evince", "limit": 20},
    "constructor-auditor": {"task": "sample", "protocol": "constructor-auditor", "limit": 30},
    "ceda": {"task": "sample-claims", "protocol": "ceda"},
    "odd-ids": {
        "task": [{"id": case_id, "question": f"Is {number} prime?"} for number, case_id in enumerate(ODD_IDS)],
        "protocol": "single-agent",
    },
    "socrasynth": {"task": "sample-subjects", "protocol": "socrasynth", "limit": 4},
}
"""Arguments of small runs of the simulated model, by name."""


@pytest.fixture(scope="session")
def apart() -> Iterator[Apart]:
    """Calls functions in a thread without an event loop: this one has that of the browser's driver."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda function: thread.submit(function).result()


@pytest.fixture(scope="session")
def run_of(apart: Apart, tmp_path_factory: pytest.TempPathFactory) -> RunOf:
    """Runs, each made when a test first asks for it."""
    home, made = tmp_path_factory.mktemp("runs"), dict[str, Path]()

    def make(name: str) -> Path:
        if name not in made:
            made[name] = apart(lambda: moot.run(engine="inline", out=home / name, **RUNS[name]).path)
        return made[name]

    return make


@pytest.fixture(scope="session")
def report_of(run_of: RunOf, tmp_path_factory: pytest.TempPathFactory) -> ReportOf:
    """Reports of these runs, likewise."""
    home, made = tmp_path_factory.mktemp("reports"), dict[str, Path]()

    def make(name: str) -> Path:
        if name not in made:
            made[name] = home / f"{name}.html"
            made[name].write_text(build_report(run_of(name)).html(), encoding="utf-8")
        return made[name]

    return make


@pytest.fixture(scope="module")
def start() -> Iterator[Start]:
    """Starts `moot` with some arguments in processes, which are ended at the end; what they print is one stream."""
    with ExitStack() as stack:

        def make(*arguments: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "moot", *arguments]
            started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            process = stack.enter_context(started)
            stack.callback(process.kill)
            return process

        yield make


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        yield started
        started.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves the pages of folders of runs. A server ends after the pages that ask it, which would report its end."""
    with ExitStack() as stack:
        yield lambda runs: stack.enter_context(viewed(runs))


@pytest.fixture
def open_page(browser: Browser, serve: Serve) -> Iterator[OpenPage]:
    """Opens pages, each in a profile of its own. In the end none has said anything on the console or by a dialog."""
    contexts, opened = [], []

    def make(
        place: Path | str, fragment: str = "", *, width: int = 1280, scheme: Any = "light", **more: Any
    ) -> OpenedPage:
        is_file = isinstance(place, Path)
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            offline=is_file,
            accept_downloads=False,
            **more,
        )
        contexts.append(context)
        context.set_default_timeout(60_000)
        page = OpenedPage(context.new_page())
        opened.append(page)
        page.page.goto((place.as_uri() if isinstance(place, Path) else place) + fragment)
        return page

    yield make
    for context in contexts:
        context.close()
    assert not [line for page in opened for line in page.said]
