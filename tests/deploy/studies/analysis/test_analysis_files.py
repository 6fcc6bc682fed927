"""What an analysis writes: tables twice with one content, pictures, a page that needs nothing else, always the same."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from PIL import Image
from planted_replies import analysed, planted, shown

from moot.deploy.studies.analysis.analyze import MANIFEST, PAGE, Analysis, write_analysis
from moot.protocols.errors import ConfigError, RecordError


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """An analysis in which every table but that of the judges has rows, and every figure something to show."""
    table = planted(12, 3, {"constructor": 0.6, "auditor": 0.3}, tokens=40)
    return analysed(table, tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def written(found: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its files."""
    folder = tmp_path_factory.mktemp("files") / "deep" / "analysis"
    assert _written_small(found, folder) == folder / PAGE
    return folder


def _written_small(found: Analysis, folder: Path) -> Path:
    """As `write_analysis`, with pictures that are drawn sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moot.deploy.results.report.plots._DOTS_PER_INCH", 80)
        return write_analysis(found, folder)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _plain(value: Any) -> Any:
    """A cell as text, a number to twelve digits, so that CSV and Parquet can be compared."""
    if value is None or value == "":
        return None
    return f"{float(value):.12g}" if isinstance(value, int | float) else str(value)


def test_every_table_is_there_twice_and_equal(found: Analysis, written: Path) -> None:
    for name, table in found.tables.items():
        whole = pq.read_table(written / f"{name}.parquet")
        assert whole.equals(found.table(name))
        assert whole.num_rows == len(table.rows)
        floating = [name for name in whole.column_names if pa.types.is_floating(whole.schema.field(name).type)]
        assert not any(pa.compute.any(pa.compute.is_nan(whole[name])).as_py() for name in floating), "NaN is null"
        types = {each.name: each.type for each in whole.schema if not pa.types.is_null(each.type)}
        texts = pc.ConvertOptions(column_types=types)
        read = pc.read_csv(written / f"{name}.csv", convert_options=texts)
        assert read.column_names == whole.column_names
        for one, other in zip(read.to_pylist(), whole.to_pylist(), strict=True):
            assert {key: _plain(value) for key, value in one.items()} == {k: _plain(v) for k, v in other.items()}


def test_every_figure_is_a_picture(found: Analysis, written: Path) -> None:
    for name in found.figures:
        assert (written / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
        with Image.open(written / f"{name}.png") as picture:
            assert min(picture.size) > 200
            assert len(set(picture.convert("L").resize((64, 64)).tobytes())) > 5, "something is drawn"


def test_the_manifest_names_what_is_there(found: Analysis, written: Path) -> None:
    manifest = json.loads((written / MANIFEST).read_text())
    assert set(manifest["files"]) == _names(written)
    assert manifest["facts"] == found.facts.model_dump()
    assert manifest["settings"] == found.settings.model_dump()


def test_the_page_needs_nothing_else(found: Analysis, written: Path) -> None:
    page = (written / PAGE).read_text(encoding="utf-8")
    assert "default-src &#39;none&#39;" in page
    assert "connect-src &#39;none&#39;" in page
    sources = re.findall(r'<[^>]*\s(?:src|href)="([^"]*)"', page)
    assert {source[:1] for source in sources} == {"#"}
    anchors = {source[1:] for source in sources}
    assert anchors <= set(re.findall(r'id="([^"]+)"', page))
    assert "more rows are in associations.csv" in page


def test_the_page_and_the_files_show_the_same_charts(found: Analysis, written: Path) -> None:
    page = (written / PAGE).read_text(encoding="utf-8")
    several = [chart for charts in found.charts.values() for chart in charts]
    assert re.findall(r'id="chart-([^"]+)"', page) == [chart.name for chart in several]
    svg = (written / "score_distributions.svg").read_text(encoding="utf-8")
    for chart in found.charts["score_distributions"]:
        assert chart.title in page.replace("&#39;", "'")
        assert chart.title in svg


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(found: Analysis, written: Path, tmp_path: Path) -> None:
    source = Path(found.facts.sources[0])
    again = analysed(pq.read_table(source), source.parent)
    _written_small(again, tmp_path)
    assert _names(tmp_path) == _names(written)
    for name in _names(written):
        assert (tmp_path / name).read_bytes() == (written / name).read_bytes(), name
    assert shown(again) == shown(found)


def test_another_analysis_takes_the_place_of_the_first(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    (tmp_path / "notes.md").write_text("mine\n")
    (tmp_path / "sub").mkdir()
    scores = planted(12, 4, {"constructor": 0.6}).drop_columns(["logprob", "correct"])
    other = analysed(scores, tmp_path / "sub")
    write_analysis(other, tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert _names(tmp_path) == {*manifest["files"], "notes.md", "sub"}
    assert not (tmp_path / "bands.svg").exists(), "there is nothing to draw it from"
    assert (tmp_path / "notes.md").read_text() == "mine\n"


def test_a_manifest_that_names_files_elsewhere_takes_none_of_them(
    found: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    folder, mine = tmp_path / "analysis", tmp_path / "mine.txt"
    folder.mkdir()
    mine.write_text("mine\n")
    names = ["../mine.txt", str(mine), "..", ""]
    (folder / MANIFEST).write_text(json.dumps({"checksums": dict.fromkeys(names, crc32(b"mine\n"))}))
    write_analysis(found, folder)
    assert mine.read_text() == "mine\n"


def test_a_damaged_manifest_takes_no_file_of_another_content(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    (tmp_path / "cands.svg").write_text("mine\n")
    manifest = tmp_path / MANIFEST
    manifest.write_text(manifest.read_text().replace('"bands.svg"', '"cands.svg"'))  # one bit
    (tmp_path / "bands.png").write_text("changed by a person")
    write_analysis(
        analysed(planted(12, 4, {"constructor": 0.6}).drop_columns(["logprob", "correct"]), tmp_path), tmp_path
    )
    assert (tmp_path / "cands.svg").read_text() == "mine\n"
    assert (tmp_path / "bands.png").read_text() == "changed by a person"


def test_an_unwritable_file_is_reported(found: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file"):
        write_analysis(found, tmp_path / "file")
    with pytest.raises(RecordError, match="below"):
        write_analysis(found, tmp_path / "file" / "below")
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(RecordError, match="--out"):
        write_analysis(found, tmp_path)


def test_without_matplotlib_there_is_everything_but_files_of_figures(
    found: Analysis, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = write_analysis(found, tmp_path).read_text(encoding="utf-8").replace("&#39;", "'")
    assert "No figures were written as files: they need matplotlib (pip install 'moot[plot]')" in page
    assert "<canvas" in page
    assert _names(tmp_path) == {name for name in _names(written) if not name.endswith((".svg", ".png"))}
    with pytest.raises(ConfigError, match="matplotlib"):
        found.figure("bands")
    assert "matplotlib" in shown(found)


def test_a_name_that_is_not_there_is_answered_with_the_nearest(found: Analysis) -> None:
    with pytest.raises(ConfigError, match="top_features"):
        found.table("top_feature")
    with pytest.raises(ConfigError, match="bands"):
        found.figure("band")
