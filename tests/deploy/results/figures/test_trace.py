"""Numbers of a debate round by round: as a table, as a plot in the terminal, as Markdown, JSON and a figure,
distinguishable without colour, and written whole or not at all."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from not_none import not_none
from planted_records import PlantedSession, Printed
from rich.console import Console

from moot.deploy.cli.main import main
from moot.deploy.results.figures.round_trace import (
    BLOCKS,
    PLAIN,
    RoundTrace,
    build_round_trace,
    sparkline,
    trace_blocks,
)
from moot.deploy.results.report.render import report_text
from moot.deploy.results.show import show
from moot.deploy.results.transcript import build_transcript
from moot.deploy.runs.run import run
from moot.protocols.errors import ConfigError, RecordError
from moot.protocols.events import RoundFigures

P, Q = {"HCV": 0.4, "HBV": 0.6}, {"HCV": 0.7, "HBV": 0.3}
ROUNDS = [(None, P, Q), (0.9, Q, P), (0.5, P, P)]
CRIT = [(0.6, 0.5), (0.7, None), (0.8, 0.75)]
EVIL = "a $\\frac{1}{2}$ <script>&amp; \x1b[2J \u202e\u60a3 \uffff"
drawing = pytest.mark.needs("module/matplotlib")


@pytest.fixture
def debated(session: PlantedSession) -> Path:
    """A debate of three rounds, and one of none."""
    session.case("c1", labels=("HCV", "HBV"))
    session.evince("c1", ROUNDS, crit=CRIT)
    session.verdict("c1", "HCV", "converged", rounds=2)
    session.reply("c1", "opening/agent/0", 1)
    session.case("none")
    session.verdict("none")
    return session.plant(simulated=True)


def _trace(folder: Path, case_id: str = "c1") -> RoundTrace:
    found = not_none(build_transcript(folder, case_id).trace)
    return found


def _printed(trace: RoundTrace, width: int = 80, encoding: str = "utf-8") -> str:
    written = io.BytesIO()
    sink = io.TextIOWrapper(written, encoding=encoding)
    Console(file=sink, width=width, force_terminal=True, color_system=None).print(
        report_text(trace_blocks(trace)), crop=False
    )
    sink.flush()
    return written.getvalue().decode(encoding)


def test_every_number_of_every_round_is_there_in_the_declared_order(debated: Path) -> None:
    trace = _trace(debated)
    assert trace.rounds == [0, 1, 2]
    assert [series.title for series in trace.series] == [
        "kappa", "WD", "JSD", "KL agent/0>agent/1", "KL agent/1>agent/0", "MI", "NMI", "H agent/0", "H agent/1",
        "H mixture", "CE agent/0>agent/1", "CE agent/1>agent/0", "gain", "CRIT agent/0", "CRIT agent/1",
    ]  # fmt: skip
    values = {series.title: series.values for series in trace.series}
    assert values["kappa"] == [None, 0.9, 0.5]
    assert values["CRIT agent/1"] == [0.5, None, 0.75]
    assert values["gain"] == [None, 0.1, 0.1]
    assert values["WD"] == pytest.approx([0.3, 0.3, 0.0])
    assert values["JSD"][0] == values["JSD"][1]
    assert values["KL agent/0>agent/1"][0] == pytest.approx(0.4 * 0.55961579 * -1 + 0.6 * 0.69314718, abs=1e-6)


def test_the_plot_has_gaps_where_a_value_is_unknown(debated: Path) -> None:
    plot = {line[:18].strip(): line[20:] for line in _printed(_trace(debated)).splitlines() if line}
    assert plot["kappa"] == "   ███▅▅▅  0.9 to 0.5"
    assert plot["CRIT agent/1"] == "▅▅▅   ▇▇▇  5 to 7.5"
    assert plot["WD"].startswith("██████▁▁▁"), "zero is drawn, as the lowest level"


def test_one_round_has_a_table_and_no_plot(session: PlantedSession) -> None:
    session.case("c1", labels=("HCV", "HBV"))
    session.evince("c1", ROUNDS[:1])
    shown = _printed(_trace(session.plant()))
    assert "JSD," in shown
    assert not set(BLOCKS) & set(shown)
    assert "contentiousness" not in shown


def test_rounds_are_ordered_as_numbers_and_long_debates_are_folded() -> None:
    rounds = [RoundFigures(round=n, kappa=n / 100, path=f"round/{n}") for n in reversed(range(100))]
    trace = not_none(build_round_trace(rounds))
    assert trace.rounds == list(range(100))
    assert trace.series[0].values == [n / 100 for n in range(100)]
    lines = _printed(trace, 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert sum(line.count(level) for line in lines for level in BLOCKS) == 100


def test_selene_and_any_protocol_with_known_keys_has_a_trace(
    session: PlantedSession, tmp_path: Path, printed: Printed
) -> None:
    always = run(task="sample", limit=1, protocol="always-debate", engine="inline", out=tmp_path / "run").path
    trace = _trace(always, "sample-001")
    assert [series.title for series in trace.series] == ["D", "answers changed"]
    assert all(value is not None for series in trace.series for value in series.values)
    assert "answers changed" in printed(show, always, "sample-001")
    session.case("c1")
    sides = {"agent/0": 0.5, "agent/1": None}
    session.event("c1", "round", "round/0", {"round": 0, "kappa": 0.9, "crit": sides, "gamma": 0.5, "asked": ["?"]})
    session.event("c1", "round", "round/1", {"round": 1, "kappa": 0.75, "crit": sides, "gamma": None})
    found = _trace(session.plant())
    assert [series.title for series in found.series] == ["kappa", "CRIT agent/0", "CRIT agent/1", "Gamma"]


def test_what_is_no_number_is_unknown_and_without_numbers_there_is_no_trace() -> None:
    odd = {"round": 0, "kappa": "0.9", "jsd": True, "wd": float("inf"), "mi": float("nan"), "kl": {"a>b": [], "b>a": 1}}
    trace = not_none(build_round_trace([not_none(RoundFigures.read(odd))]))
    assert {series.title: series.values for series in trace.series} == {
        "kappa": [None], "WD": [None], "JSD": [None], "KL a>b": [None], "KL b>a": [1.0], "MI": [None],
    }  # fmt: skip
    assert build_round_trace([]) is None
    assert build_round_trace([not_none(RoundFigures.read({"round": 1, "mine": 3}))]) is None
    assert [RoundFigures.read(data) for data in ({"round": "first", "kappa": 0.9}, {"round": True})] == [None, None]


def test_a_transcript_can_be_printed_where_the_encoding_lacks_marks(
    session: PlantedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.case("c1", question="Is it \x1b[2J \u00e9?")
    folder = session.plant()
    for form in ("text", "md"):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", errors="strict"))
        monkeypatch.setattr(sys, "argv", ["moot", "show", str(folder), "c1", "--format", form])
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()
        assert not ended.value.code
        assert "\\u241b" in written.getvalue().decode().replace("\\\\", "\\").replace("\\[", "[")


@given(st.lists(st.none() | st.floats(0.0, 1.0), max_size=30), st.integers(1, 3))
def test_a_spark_line_is_as_long_as_it_says_and_rises_with_the_values(values: list[float | None], cells: int) -> None:
    for levels in (BLOCKS, PLAIN):
        line = sparkline(values, 0.0, 1.0, levels, cells)
        assert len(line) == cells * len(values)
        drawn = [levels.find(line[i * cells]) for i in range(len(values))]
        assert [at < 0 for at in drawn] == [value is None for value in values]
        pairs = sorted((value, at) for value, at in zip(values, drawn, strict=True) if value is not None)
        assert [at for _, at in pairs] == sorted(at for _, at in pairs)


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
    session: PlantedSession, plotted: Callable[..., bytes]
) -> None:
    session.case("c1")
    session.evince("c1", [(0.9, P, Q)])
    run = session.plant(simulated=False)
    first = plotted(run)
    assert b"SIMULATED" not in first
    assert plotted(run) == first


@drawing
def test_hostile_names_are_text(session: PlantedSession, plotted: Callable[..., bytes]) -> None:
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
    printed(show, debated, "c1", plot=tmp_path / "new" / "folder" / "figure.svg")
    assert (tmp_path / "new" / "folder" / "figure.svg").exists()
    busy = tmp_path / "out" / ("x" * 250 + ".svg")
    with pytest.raises(RecordError, match="cannot write"):
        printed(show, debated, "c1", plot=busy)


def test_files_that_cannot_be_figures_are_refused(debated: Path, tmp_path: Path, printed: Printed) -> None:
    for name, said in (
        ("figure.pdf", r"\.svg or \.png"),
        ("figure", r"\.svg or \.png"),
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
