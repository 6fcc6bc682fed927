"""The numbers of a debate round by round: as a table, as a plot in the terminal, as Markdown and as JSON."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known import known
from planted_records import Printed, Session
from rich.console import Console

from moot.deploy.cli.main import main
from moot.deploy.reading.report.render import report_text
from moot.deploy.reading.rounds.trace import BLOCKS, PLAIN, Trace, sparkline, trace_blocks, trace_of
from moot.deploy.reading.show import show
from moot.deploy.reading.transcripts.transcript import transcript
from moot.deploy.running.run import run

P, Q = {"HCV": 0.4, "HBV": 0.6}, {"HCV": 0.7, "HBV": 0.3}
ROUNDS = [(None, P, Q), (0.9, Q, P), (0.5, P, P)]
CRIT = [(0.6, 0.5), (0.7, None), (0.8, 0.75)]


@pytest.fixture
def debated(session: Session) -> Path:
    session.case("c1", labels=("HCV", "HBV"))
    session.evince("c1", ROUNDS, crit=CRIT)
    session.verdict("c1", "HCV", "converged", rounds=2)
    return session.plant(simulated=True)


def _trace(folder: Path, case_id: str = "c1") -> Trace:
    found = known(transcript(folder, case_id).trace)
    return found


def _printed(trace: Trace, width: int = 80, encoding: str = "utf-8") -> str:
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


def test_one_round_has_a_table_and_no_plot(session: Session) -> None:
    session.case("c1", labels=("HCV", "HBV"))
    session.evince("c1", ROUNDS[:1])
    shown = _printed(_trace(session.plant()))
    assert "JSD," in shown
    assert not set(BLOCKS) & set(shown)
    assert "contentiousness" not in shown


def test_rounds_are_ordered_as_numbers_and_long_debates_are_folded() -> None:
    events = [(f"round/{n}", {"round": n, "kappa": n / 100}) for n in reversed(range(100))]
    trace = known(trace_of(events))
    assert trace.rounds == list(range(100))
    assert trace.series[0].values == [n / 100 for n in range(100)]
    lines = _printed(trace, 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert sum(line.count(level) for line in lines for level in BLOCKS) == 100


def test_selene_and_any_protocol_with_known_keys_has_a_trace(
    session: Session, tmp_path: Path, printed: Printed
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
    trace = known(trace_of([("round/0", odd)]))
    assert {series.title: series.values for series in trace.series} == {
        "kappa": [None], "WD": [None], "JSD": [None], "KL a>b": [None], "KL b>a": [1.0], "MI": [None],
    }  # fmt: skip
    assert trace_of([]) is None
    assert trace_of([("round/1", {"round": 1, "mine": 3})]) is None
    assert trace_of([("round/x", {"round": "first", "kappa": 0.9}), ("round/y", {"round": True})]) is None


def test_a_transcript_can_be_printed_where_the_encoding_lacks_marks(
    session: Session, monkeypatch: pytest.MonkeyPatch
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
