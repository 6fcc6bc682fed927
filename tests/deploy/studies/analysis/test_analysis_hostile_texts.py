"""Texts from tables and records are data: they end no element, move no cursor and turn no direction, wherever shown."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from not_none import not_none
from planted_records import CONTROL
from planted_replies import QUICK, changed, planted, shown

from moot.deploy.results.report.html import SCRIPTS
from moot.deploy.results.report.plots import plot_style, render_figure
from moot.deploy.studies.analysis.analyze import PAGE, Analysis, analyze, write_analysis

SCRIPT = "<script>alert(1)</script>"
ESCAPES = "\x1b[2J\x1b]0;owned\x07"
TURNED = "\u202egnorw\u2066\u200b"
BREAKS = 'x" onerror="a\n# b | c `d` {{ 7 * 7 }} &amp; \u2028$\\frac{1}{2}$'
HOSTILE = SCRIPT + ESCAPES + TURNED + BREAKS


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """An analysis of a table every text of which is hostile: two roles of one model, and one of them of another."""
    table = planted(10, 3, {"first": 0.6, "second": 0.6}, tokens=40)
    count = table.num_rows
    roles = table["role"].to_pylist()
    texts = {name: [f"{roles[row]} {name} {HOSTILE}" for row in range(count)] for name in ("case", "group", "reply")}
    texts |= {name: [f"{name} {HOSTILE}"] * count for name in ("dataset", "domain")}
    texts["model"] = [f"model {HOSTILE} {row % 2 if roles[row] == 'second' else 0}" for row in range(count)]
    texts["logprob_stage"] = [f"before {HOSTILE}"] * count
    texts["role"] = [f"{role} {HOSTILE}" for role in roles]
    tokens = [[f"{HOSTILE}: ", *["t"] * (len(row) - 1)] for row in table["logprob"].to_pylist()]
    table = changed(table, **texts, token=tokens).rename_columns({"score_a": f"score_{HOSTILE}"})
    path = tmp_path_factory.mktemp("hostile") / "table <script>.parquet"
    pq.write_table(table, path)
    return analyze(table=path, settings=QUICK.model_copy(update={"too_few": 5, "least_n": 5}))


@pytest.fixture(scope="module")
def written(found: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its files; of pictures only those that hold texts are drawn."""
    with pytest.MonkeyPatch.context() as patch:
        drawn_as_svg = "moot.deploy.studies.analysis.analyze.render_figure"
        patch.setattr(drawn_as_svg, lambda drawn, form: render_figure(drawn, "svg") if form == "svg" else b"")
        return write_analysis(found, tmp_path_factory.mktemp("hostile")).parent


class _Tags(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_escapes_texts(written: Path) -> None:
    page = (written / PAGE).read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(page)
    assert not {tag for tag, _ in tags.found} & {"iframe", "object", "link", "base"}
    assert sum(tag == "script" for tag, _ in tags.found) == 1 + len(SCRIPTS), "its data, and its own"
    assert not [name for _, attributes in tags.found for name in attributes if name.startswith("on")]
    assert not CONTROL.search(page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\u241b[2J" in page
    assert "{{ 7 * 7 }}" in page, "texts are no templates"


def test_plots_escape_texts(found: Analysis, written: Path) -> None:
    pictures = sorted(written.glob("*.svg"))
    assert [picture.stem for picture in pictures] == sorted(found.figures)
    for picture in pictures:
        svg = picture.read_text(encoding="utf-8")
        assert not CONTROL.search(svg)
        elements = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
        assert not elements & {"script", "foreignObject", "a"}
        assert "<script>" in "".join(ElementTree.fromstring(svg).itertext())


def test_names_that_are_longer_than_a_margin_lie_within_the_figure(found: Analysis) -> None:
    from matplotlib.text import Text

    with plot_style():
        for name in found.figures:
            drawn = not_none(found.figure(name))
            drawn.draw_without_rendering()
            boxes = [text.get_window_extent() for text in drawn.findobj(Text) if "<script>" in text.get_text()]
            assert boxes, name
            assert all(-1 <= box.x0 < box.x1 <= drawn.bbox.x1 + 1 for box in boxes), name


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_a_terminal_gets_no_control_characters(found: Analysis, form: str) -> None:
    out = shown(found, form)
    assert not CONTROL.search(out)
    if form == "md":
        assert "<script" not in out
        assert not [line for line in out.splitlines() if line.startswith("# b")]
        tables = [line for line in out.splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables} <= {*range(3, 20)}
    elif form == "json":
        assert HOSTILE in json.loads(out)["tables"]["strata"][0]["role"]
    else:
        assert "\u241b[2J" in out


def test_files_contain_texts_unchanged(written: Path) -> None:
    strata = pq.read_table(written / "strata.parquet").to_pylist()
    assert {row["role"] for row in strata} == {f"{role} {HOSTILE}" for role in ("first", "second")}
    assert {path.suffix for path in written.iterdir()} == {".csv", ".parquet", ".svg", ".png", ".html", ".json"}
