"""A debate's rounds as a figure: everything on it, told apart without colour, and written whole or not at all."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from planted_records import Printed, Session

from moot.deploy.reading.show import show
from moot.protocols.errors import ConfigError, RecordError

drawing = pytest.mark.needs("module/matplotlib")
EVIL = "a $\\frac{1}{2}$ <script>&amp; \x1b[2J \u202e\u60a3 \uffff"
P, Q = {"HCV": 0.4, "HBV": 0.6}, {"HCV": 0.7, "HBV": 0.3}
CRIT = [(0.6, 0.5), (0.7, None), (0.8, 0.75)]


@pytest.fixture
def debated(session: Session) -> Path:
    session.case("c1", labels=("HCV", "HBV"))
    session.evince("c1", [(0.9, P, Q), (0.7, Q, P), (0.5, P, P)], crit=CRIT)
    session.case("none")
    session.verdict("none")
    session.reply("none", "opening/agent/0", 1)
    return session.plant(simulated=True)


@pytest.fixture
def plotted(tmp_path: Path, printed: Printed) -> Callable[..., bytes]:
    """What `--plot` writes."""

    def make(run: Path, case_id: str = "c1", suffix: str = "svg") -> bytes:
        file = tmp_path / f"figure.{suffix}"
        printed(show, run, case_id, plot=file)
        return file.read_bytes()

    return make


def _texts(svg: bytes) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@drawing
def test_a_figure_has_every_scale_with_its_unit_and_its_text_as_text(
    debated: Path, plotted: Callable[..., bytes]
) -> None:
    texts = _texts(plotted(debated))
    assert f"{debated.name}, case c1" in texts
    assert "SIMULATED models" in texts
    joined = " ".join(texts)
    for axis in ("contentiousness kappa (0 to 1)", "distance between the sides", "divergence (nat)", "entropy (nat)"):
        assert axis in joined
    assert "quality of the arguments (of 10)" in joined
    assert texts.count("round") == 1
    for line in ("kappa", "WD", "JSD", "KL agent/0>agent/1", "H agent/1", "H mixture", "CRIT agent/0", "CRIT agent/1"):
        assert line in texts
    assert {"0", "1", "2"} <= set(texts)
    assert not {"0.5 round", "MI"} & set(texts)


@drawing
def test_a_real_run_is_not_called_simulated_and_the_same_debate_gives_the_same_file(
    session: Session, plotted: Callable[..., bytes]
) -> None:
    session.case("c1")
    session.evince("c1", [(0.9, P, Q)])
    run = session.plant(simulated=False)
    first = plotted(run)
    assert b"SIMULATED" not in first
    assert plotted(run) == first


@drawing
def test_hostile_names_are_text(session: Session, plotted: Callable[..., bytes]) -> None:
    session.case(EVIL)
    rounds = {"round": 0, "entropy": {EVIL: 0.5, "agent/1": 0.25}, "crit": {"agent/1": None}}
    session.event(EVIL, "round", "round/0", rounds)
    run = session.plant(simulated=False)
    svg = plotted(run, EVIL)
    assert b"<script" not in svg
    assert not re.search("[\x00-\x08\x1b\u202e\uffff]", svg.decode())
    assert any(r"$\frac{1}{2}$ <script>&amp;" in text for text in _texts(svg))
    assert "CRIT" not in " ".join(_texts(svg)), "a scale on which nothing is known has no plot"
    assert plotted(run, EVIL, "png").startswith(b"\x89PNG")


@drawing
def test_an_existing_file_is_replaced_as_a_whole_or_kept(debated: Path, tmp_path: Path, printed: Printed) -> None:
    file = tmp_path / "out" / "figure.SVG"
    file.parent.mkdir()
    file.write_text("old")
    with pytest.raises(ConfigError, match="case 'none'"):
        printed(show, debated, "none", plot=file)
    assert file.read_text() == "old"
    printed(show, debated, "c1", plot=file)
    assert file.read_bytes().startswith(b"<?xml")
    assert [each.name for each in file.parent.iterdir()] == ["figure.SVG"]
    busy = tmp_path / "out" / ("x" * 250 + ".svg")
    with pytest.raises(RecordError, match="cannot write"):
        printed(show, debated, "c1", plot=busy)


def test_files_that_cannot_be_figures_are_refused(debated: Path, tmp_path: Path, printed: Printed) -> None:
    for name, said in (
        ("figure.pdf", r"\.svg or \.png"),
        ("figure", r"\.svg or \.png"),
        ("nowhere/figure.svg", "nowhere"),
    ):
        with pytest.raises(ConfigError, match=said):
            printed(show, debated, "c1", plot=tmp_path / name)
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(ConfigError, match="folder"):
        printed(show, debated, "c1", plot=tmp_path / "folder.svg")
    with pytest.raises(ConfigError, match="--plot"):
        printed(show, debated, plot=tmp_path / "figure.svg")


def test_without_matplotlib_the_extra_is_named(
    debated: Path, tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"moot\[plot\]"):
        printed(show, debated, "c1", plot=tmp_path / "figure.svg")
    assert not list(tmp_path.glob("figure*"))
