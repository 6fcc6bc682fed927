"""Figures of charts: every kind of series is drawn, texts stay texts, and the same chart gives the same bytes."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from planted_records import CONTROL, EVIL

from moot.deploy.results.report.blocks import Chart, Guide, Note, Series
from moot.deploy.results.report.plots import FORMS, check_figures_folder, draw_chart, save_figures
from moot.protocols.errors import ConfigError

pytestmark = pytest.mark.needs("module/matplotlib")

NUMBERS = Chart(
    "numbers",
    "By number",
    [
        Series("band", [0.1, 0.5, 0.9], low=[0.0, 0.1, None], high=[0.5, 0.6, None], mark="band", style=4),
        Series("line", [0.1, 0.5, 0.9], [0.2, None, 0.4], low=[0.1, None, 0.3], high=[0.3, None, 0.5], mark="line"),
        Series("points", [1, 10], [0.5, 0.7], low=[0.4, None], high=[0.6, None], cases=["a", "b"]),
    ],
    x_label="x",
    y_label="y",
    note="How to read it.",
    x_range=(0.1, 10.0),
    y_range=(0.0, 1.0),
    x_log=True,
    guides=[Guide("threshold", x=0.5), Guide("chance", y=0.5)],
)
WORDS = Chart(
    "words",
    "By word",
    [
        Series("one", ["round 1", "round 2"], [1.0, None], low=[0.5, None], high=[1.5, None], mark="bars"),
        Series("other", ["round 2", "a category with a very long name"], [1, 2], mark="bars"),
        Series("line", ["round 1", "round 2"], [1.0, 2.0], mark="line"),
    ],
)
EMPTY = Chart("empty", "Nothing", [Series("none", [])])
HOSTILE = Chart(
    "hostile", EVIL, [Series(EVIL, [EVIL, "x"], [1.0, 2.0], mark="bars")], x_label=EVIL, y_label=EVIL, note=EVIL,
    guides=[Guide(EVIL, y=1.0)],
)  # fmt: skip


def texts(svg: bytes) -> str:
    """All texts of a figure."""
    return " ".join(
        element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    )


@pytest.mark.parametrize("chart", [NUMBERS, WORDS, EMPTY, HOSTILE], ids=lambda chart: chart.name)
def test_the_same_chart_gives_the_same_bytes(chart: Chart) -> None:
    for form in FORMS:
        assert draw_chart(chart, form) == draw_chart(chart, form)


def test_a_figure_names_what_the_chart_names() -> None:
    shown = texts(draw_chart(NUMBERS, "svg", simulated=True))
    for text in ("By number", "SIMULATED models", "band", "line", "points", "threshold", "chance", "How to read it."):
        assert text in shown
    assert "SIMULATED" not in texts(draw_chart(NUMBERS, "svg"))
    assert "round 2" in texts(draw_chart(WORDS, "svg"))


def test_what_a_model_wrote_is_text() -> None:
    svg = draw_chart(HOSTILE, "svg")
    assert not CONTROL.search(svg.decode())
    assert "script" not in {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}


def test_each_chart_is_saved_in_both_forms(tmp_path: Path) -> None:
    files = save_figures([NUMBERS, Note("not a chart"), WORDS], tmp_path / "new" / "figures", simulated=False)
    assert sorted(file.name for file in files) == ["numbers.png", "numbers.svg", "words.png", "words.svg"]
    assert sorted(files) == sorted((tmp_path / "new" / "figures").iterdir())


def test_many_points_are_a_picture_inside_the_svg() -> None:
    many = Chart("many", "Many", [Series("all", list(range(30_000)), [0.5] * 30_000)])
    assert len(draw_chart(many, "svg")) < 200_000


def test_without_matplotlib_or_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="that is a file; name a folder"):
        check_figures_folder(tmp_path / "file")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"--figures needs matplotlib.*pip install 'moot\[plot\]'"):
        save_figures([WORDS], tmp_path / "figures", simulated=False)
    assert not (tmp_path / "figures").exists()
