"""Forms of a report: terminal, Markdown, JSON, page and figures are of one report."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from planted_records import Command, InlineRun

from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.report.blocks import Chart, Heading, Table
from moot.deploy.results.run_report.report import build_report


@pytest.fixture(scope="module")
def run(inline_run: InlineRun) -> Path:
    return inline_run("selene")


def test_json_has_every_part_and_its_numbers(run: Path, command: Command) -> None:
    report = build_report(run)
    code, out, _ = command("report", str(run), "--format", "json")
    found = json.loads(out)
    assert (code, found["simulated"], found["runs"]) == (0, True, [str(run)])
    titles = [block.text for block in report.blocks if isinstance(block, Heading) and block.level < 3]
    assert [part["title"] for part in found["parts"]] == titles
    blocks = [block for part in found["parts"] for block in part["blocks"]]
    tables = [[list(row) for row in block.rows] for block in report.blocks if isinstance(block, Table)]
    assert [block["table"] for block in blocks if "table" in block] == tables
    charts = {block["chart"]["name"]: block["chart"] for block in blocks if "chart" in block}
    for chart in (block for block in report.blocks if isinstance(block, Chart)):
        shown = charts.pop(chart.name)
        assert [series["name"] for series in shown["series"]] == [series.name for series in chart.series]
        assert (shown["title"], shown["note"]) == (chart.title, chart.note)
    assert not charts
    assert found["summaries"][0]["accuracy"] == summarise(run).accuracy


def test_the_terminal_and_markdown_have_the_same_parts(run: Path, command: Command) -> None:
    for form, mark in (("text", ""), ("md", "## ")):
        code, out, _ = command("report", str(run), "--format", form)
        assert code == 0
        for block in build_report(run).blocks:
            if isinstance(block, Heading) and block.level == 2:
                assert f"{mark}{block.text}" in out
    assert not list(Path().iterdir()), "nothing is written"


@pytest.mark.needs("module/matplotlib")
def test_figures_are_written_beside_the_page(run: Path, command: Command) -> None:
    code, out, _ = command("report", str(run), "--figures", "figures")
    charts = [block.name for block in build_report(run).blocks if isinstance(block, Chart)]
    names = sorted(f"{name}.{form}" for name in charts for form in ("svg", "png"))
    assert (code, sorted(file.name for file in Path("figures").iterdir())) == (0, names)
    assert f"figures: figures ({len(names)} files)" in out
    assert Path("report.html").exists()
    Path("report.html").unlink()
    Path("taken").touch()
    code, _, error = command("report", str(run), "--figures", "taken")
    assert (code, "name a folder" in error, Path("report.html").exists()) == (2, True, False)


def test_a_page_replaces_an_earlier_page_and_nothing_else(run: Path, command: Command) -> None:
    for _ in range(2):
        assert command("report", str(run))[0] == 0
    shutil.copytree(run, "other run")
    assert f"replaces the page 'moot report: {run}'" in command("report", "other run")[1]
    Path("notes.txt").write_text("mine")
    code, _, error = command("report", str(run), "--out", "notes.txt")
    assert (code, "no mark of a report" in error, Path("notes.txt").read_text()) == (2, True, "mine")
    os.mkfifo("pipe")
    code, _, error = command("report", str(run), "--out", "pipe")
    assert (code, "not a regular file" in error, Path("pipe").is_fifo()) == (2, True, True)


def test_a_printed_report_is_no_file(run: Path, command: Command) -> None:
    code, _, err = command("report", str(run), "--format", "text", "--out", "x.html")
    assert (code, "leave one out" in err) == (2, True)
    code, _, err = command("report", str(run), "--format", "html")
    assert (code, "format" in err) == (2, True)
