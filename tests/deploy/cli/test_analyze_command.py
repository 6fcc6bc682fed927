"""`moot analyze`: what it prints in 80 columns, its formats, where its files go, and users' mistakes in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from planted_records import Command
from planted_replies import planted
from rich.cells import cell_len

from moot.deploy.studies.analysis import analyze as analysis

FEW = ("--permutations", "100", "--resamples", "50")


@pytest.fixture(scope="module")
def analysed_once() -> Callable[..., analysis.Analysis]:
    """The analysis of a table; it is the same table in every test, and counted once with the same settings."""
    analyze, made = analysis.analyze, dict[str, analysis.Analysis]()

    def once(*runs: str, **options: Any) -> analysis.Analysis:
        key = repr((runs, options))
        if key not in made:
            made[key] = analyze(*runs, **options)
        return made[key]

    return once


@pytest.fixture(autouse=True)
def _elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, analysed_once: Callable[..., analysis.Analysis]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # pictures take their time, and have tests of their own
    monkeypatch.setattr(analysis, "analyze", analysed_once)
    table = planted(12, 3, {"constructor": 0.6, "auditor": 0.3}, tokens=16)
    pq.write_table(table, "mine.parquet")
    pq.write_table(table.slice(0, 72).drop_columns(["flag", "correct"]), "small.parquet")


@pytest.fixture
def analyze(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the command on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: command("analyze", *arguments)


def test_a_table_is_analysed_into_80_columns(analyze: Command) -> None:
    code, out, err = analyze("--table", "mine.parquet", *FEW)
    assert (code, err) == (0, "")
    assert max(map(cell_len, out.splitlines())) <= 80
    assert "\n  - mine.parquet: 144 replies on 72 cases in 12 groups\n  - 144 judged, " in out
    for title in (
        "The same features in every stratum",
        "Top features for each target",
        "Judged quality, confidence and correctness in pairs",
        "The same feature in both roles",
        "Predictors of a right answer",
        "Where the signals disagree",
        "Distributions of the judges' scores",
    ):
        assert f"\n{title} ─" in out
    assert "analysis/index.html" in out
    assert Path("analysis/index.html").exists()


def test_json_and_markdown_have_the_tables_of_the_files(analyze: Command) -> None:
    code, out, _ = analyze("--table", "mine.parquet", *FEW, "--format", "json", "--out", "here")
    found = json.loads(out)
    assert (code, found["files"], found["settings"]["permutations"]) == (0, "here", 100)
    for name, rows in found["tables"].items():
        assert rows == pq.read_table(f"here/{name}.parquet").to_pylist()
    assert "associations" not in found["tables"], "it has thousands of rows, and stands in the files"
    code, out, _ = analyze("--table", "mine.parquet", *FEW, "--format", "md", "--out", "here")
    assert code == 0
    assert out.startswith("# Confidence signals against judged reasoning\n\n- mine.parquet: 144 replies")
    assert "\n## Top features for each target\n\n| stratum | target | \\# | feature |" in out
    assert "confident -> better" in out


def test_settings_reach_the_analysis(analyze: Command) -> None:
    given = {"quantile": 0.4, "low_quality": 6.0, "high_quality": 7.0, "seed": 3, "permutations": 120, "resamples": 60}
    flags = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", f"{value:g}")]
    analyze("--table", "mine.parquet", *flags, "--out", "other")
    told = json.loads(Path("other/analysis.json").read_text())["settings"]
    assert {name: told[name] for name in given} == given
    analyze("--table", "mine.parquet", *FEW, "--out", "default")
    one, other = (pq.read_table(f"{folder}/divergences.parquet").to_pylist() for folder in ("default", "other"))
    more = [b["count"] - a["count"] for a, b in zip(one, other, strict=True)]
    assert min(more) >= 0, "with these ends more are sure or unsure, weak or well reasoned"
    assert sum(more) > 10


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--table"),
        (("run", "--table", "mine.parquet"), "one of the two"),
        (("nowhere",), "nowhere: "),
        (("--table", "missing.parquet"), "missing.parquet: "),
        (("--table", "mine.parquet", "--format", "xml"), "'xml'"),
        (("--table", "mine.parquet", "--permutations", "5"), "--permutations"),
        (("--table", "mine.parquet", "--resamples", "many"), "--resamples"),
        (("--table", "mine.parquet", "--quantile", "0.5"), "quantile"),
        (("--table", "mine.parquet", "--low-quality", "9"), "low_quality, 9"),
        (("--table", "mine.parquet", "--vocabulary", "1"), "--vocabulary"),
        (("--table", "mine.parquet", "--permutation", "500"), "--permutation"),
        (("--table", "mine.parquet", *FEW, "--out", "mine.parquet"), "mine.parquet: is a file"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: tuple[str, ...], complaint: str, analyze: Command) -> None:
    code, out, err = analyze(*arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not Path("analysis").exists()


def test_a_run_from_elsewhere_does_not_choose_where_the_analysis_goes(analyze: Command, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.yaml").write_text("schema_version: 1\n")
    (tmp_path / "run" / "analysis").symlink_to(tmp_path / "home")
    code, _, err = analyze("run", *FEW)
    assert (code, "is a link" in err) == (2, True)
    assert list((tmp_path / "home").iterdir()) == []
