"""The `moot` command: what it prints, its exit codes, and that bad input writes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
import yaml
from openai_server import simulated_server
from planted_records import Command
from waiting import wait_until

from moot.actors.record.tables import read_table
from moot.actors.telemetry.log import RepeatedLines, configure_json, configure_terminal, safe_to_show
from moot.deploy.cli.console import report_interrupted
from moot.deploy.runs.flag_parsers import flags_of
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.progress import BarListener, LineListener, ProgressRate, figures
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import ConfigError

INLINE = ["run", "--engine", "inline", "--quiet"]


def test_the_main_job_and_what_is_shown_of_it(command: Command) -> None:
    code, out, err = command("run", "--engine", "inline")
    assert code == 0
    assert "simulated" in out
    assert "moot show runs/selene-sample-s0" in out
    assert "moot report runs/selene-sample-s0" in out
    assert "72 cases" in err
    code, out, err = command("run", "--engine", "inline")
    assert (code, "nothing to do" in err) == (0, True)
    code, out, _ = command("show", "runs/selene-sample-s0", "--format", "json")
    assert (code, json.loads(out)["cases"], json.loads(out)["simulated"]) == (0, 72, True)
    code, out, _ = command("show", "runs/selene-sample-s0", "sample-001")
    assert code == 0
    assert "sample-001" in out


def test_a_damaged_record_fails_with_the_advice_alone_and_is_repaired_by_it(command: Command) -> None:
    again = ["run", "--engine", "inline", "--limit", "2", "--out", "cut"]
    assert command(*again)[0] == 0
    (turns,) = Path("cut/turns").glob("*.parquet")
    os.truncate(turns, 100)
    for arguments in (again, ["show", "cut"], ["report", "cut"]):
        code, out, err = command(*arguments)
        assert (code, out, err.count("error: ")) == (2, "", 1)
        assert err.splitlines()[-1].startswith("error: ")
        assert "/cut --salvage`" in err or "moot verify cut --salvage`" in err
    code, out, _ = command("verify", "cut")
    assert (code, "`moot verify cut --salvage`" in out) == (2, True)
    code, repaired, _ = command("verify", "cut", "--salvage")
    assert code == 0
    loss, *files = repaired.splitlines()
    assert loss in out
    assert f"turns/{turns.name}: nothing of it can be read" in files
    assert "nothing to do" in command(*again)[2]


def test_protocols_are_compared_in_one_command(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["selene", "always-debate", "single-agent", "majority-vote"]
    monkeypatch.setenv("COLUMNS", "80")
    more = ["--agents", "3", "--limit", "10", "--role", "judge=simulated", "--out", "all"]
    code, out, _ = command(*INLINE, "--protocol", ",".join(names), *more)
    assert code == 0
    figures, _, commands = out.partition("\nnext:\n")
    assert max(map(len, figures.splitlines())) <= 80
    folders = " ".join(f"all/{name}" for name in names)
    assert f"moot report {folders}\n" in commands
    assert f"moot compare {folders} --cases\n" in commands
    for name in names:
        assert f"\n{name} " in out
        assert (Path("all") / name / "run.yaml").exists()


def test_next_commands_are_quoted_and_fit_the_run(command: Command) -> None:
    code, out, _ = command(*INLINE, "--protocol", "single-agent", "--limit", "20", "--out", "runs/odd na&me")
    assert code == 0
    _, _, commands = out.partition("\nnext:\n")
    assert "moot report 'runs/odd na&me'\n" in commands
    assert "moot show 'runs/odd na&me' --wrong" in commands
    assert "one debate" not in commands


OWN = """
from moot import Case, Floor, Verdict


class Quiet:
    async def run(self, case: Case, floor: Floor) -> Verdict:
        return Verdict(answer="Yes", how="quiet")
"""


def test_the_bare_command_finds_a_protocol_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "quiet_one.py").write_text(OWN)
    for installed in ("yaml", "rich"):
        (tmp_path / f"{installed}.py").write_text("raise SystemExit('imported from the current folder')")
    command = [str(Path(sys.executable).with_name("moot")), "run", "--protocol", "quiet_one:Quiet", "--limit", "2"]
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "RAY_ADDRESS")}
    more = ["--engine", "inline", "--out", "own"]
    done = subprocess.run(
        [*command, *more], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2: quiet" in done.stdout
    assert "skipped" not in done.stderr


def test_yaml_and_flags(command: Command) -> None:
    Path("mine.yaml").write_text("engine: inline\nlimit: 5\nseed: 3\nset: {debate.max_rounds: 1}\n")
    code, _, _ = command("run", "mine.yaml", "--seed", "4", "-q", "--out", "x")
    assert code == 0
    code, _, err = command("run", "x/run.yaml")
    assert (code, "nothing to do" in err) == (0, True)
    code, _, err = command("run", "x/run.yaml", "--seed", "5", "--set", "debate.max_rounds=2")
    assert (code, "seed: was 4, now 5" in err, "debate.max_rounds: was 1, now 2" in err) == (2, True, True)


def test_dry_run_writes_nothing(command: Command) -> None:
    code, out, _ = command("run", "--dry-run", "--limit", "10")
    assert code == 0
    assert "cases     10" in out
    assert "40 to 178" in out
    assert list(Path.cwd().iterdir()) == []


def test_the_time_left_is_that_of_the_pace_and_unknown_without_one() -> None:
    now = 100.0
    pace = ProgressRate(total=20, done=10, clock=lambda: now)
    assert pace.remaining_s() is None, "nothing has ended in this session"
    now = 104.0
    pace.update(12)
    assert pace.remaining_s() == pytest.approx(8 * 2.0)
    now = 115.0
    pace.update(12)
    assert pace.remaining_s() == pytest.approx(8 * 2.0), "it does not rise while nothing ends"
    now = 117.0
    assert pace.remaining_s() is None, "three times the longest gap without a case: there is no pace"
    pace.update(15)
    assert pace.remaining_s() == pytest.approx(5 * 17.0 / 5)
    now = 117.0 + 3 * 13.0
    assert pace.remaining_s() is not None, "such a gap is nothing new now"
    pace.update(20)
    now = 1000.0
    assert pace.remaining_s() == 0.0
    assert ProgressRate(total=None, done=0).remaining_s() is None


def test_every_field_of_a_run_is_a_flag() -> None:
    assert {key for key in RunConfig.model_fields if not flags_of(key)} == {"encoder_key_env", "limits"}


CASES = 12


class SlowRun:
    """A subprocess with a run over a slow simulated server."""

    def __init__(self, folder: Path, endpoint: ExitStack) -> None:
        self._folder, self._endpoint = folder, endpoint
        self._port = endpoint.enter_context(simulated_server(None, latency_ms=150.0))
        self.run: subprocess.Popen[str] | None = None

    def command(self, engine: str = "inline") -> list[str]:
        model = f"http://127.0.0.1:{self._port}/v1#simulated"
        more = ["--model", model, "--limit", str(CASES), "--max-open", "4", "--out", "run"]
        return ["run", "--engine", engine, *more]

    def start(self, engine: str = "inline") -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "moot", *self.command(engine)]
        self.run = subprocess.Popen(words, cwd=self._folder, stderr=subprocess.PIPE, text=True)
        return self.run

    def waits_no_more(self) -> None:
        """From now on the server answers at once."""
        self._endpoint.close()
        self._endpoint.enter_context(simulated_server(None, port=self._port))

    def wait_for_verdicts(self) -> None:
        run = self._folder / "run"
        wait_until(lambda: (run / "run.yaml").exists() and read_table(run, "verdicts").num_rows)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowRun]:
    with ExitStack() as endpoint:
        made = SlowRun(tmp_path, endpoint)
        yield made
        if made.run is not None:
            made.run.kill()
            made.run.communicate(timeout=20)


def test_an_interrupted_run_that_has_not_begun_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared = prepare(RunConfig(out=str(tmp_path / "run"), limit=3))
    done: Any = SimpleNamespace(done=0, under_way=0)
    for begun in (False, True):
        if begun:
            (tmp_path / "run").mkdir()
            (tmp_path / "run" / "run.yaml").write_text("{}")
        assert report_interrupted(done, prepared) == 130
        assert ("run the same command to resume" in capsys.readouterr().err) is begun


@pytest.mark.parametrize(
    ("number", "engine"),
    [
        (signal.SIGINT, "inline"),
        pytest.param(signal.SIGTERM, "inline", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "ray", marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_resumes_with_the_same_command(
    slow: SlowRun, tmp_path: Path, number: int, engine: str, command: Command
) -> None:
    """Ray takes SIGTERM for itself when it starts, and ends a process at it with a stack of its own."""
    first = slow.start(engine)
    slow.wait_for_verdicts()
    first.send_signal(number)
    _, err = first.communicate(timeout=90)
    assert first.returncode == 130, err
    assert "stopping: finishing calls in flight" in err
    assert "SIGTERM received" not in err
    assert "run the same command to resume" in err
    done_before = read_table(tmp_path / "run", "verdicts").num_rows
    assert 0 < done_before < CASES
    paid = set(read_table(tmp_path / "run", "turns", ["reply_id"])["reply_id"].to_pylist())
    slow.waits_no_more()
    code, _, err = command(*slow.command())
    assert code == 0, err
    verdicts = Counter(read_table(tmp_path / "run", "verdicts")["case_id"].to_pylist())
    assert len(verdicts) == CASES
    assert set(verdicts.values()) == {1}
    turns = read_table(tmp_path / "run", "turns").to_pylist()
    assert paid <= {turn["reply_id"] for turn in turns}
    assert not any(turn["superseded"] for turn in turns)


def test_logs_hide_keys(capsys: pytest.CaptureFixture[str]) -> None:
    configure_json("info")
    with structlog.contextvars.bound_contextvars(debate="case-1"):
        log = structlog.get_logger()
        log.info("sent", authorization="Bearer abc", note="key sk-abcdefgh123", deep=[{"api_key": "x"}])
        log.debug("unseen")
        try:
            raise ValueError("refused sk-abcdefgh123")
        except ValueError:
            log.exception("failed")
    first, second = capsys.readouterr().err.splitlines()
    line = json.loads(first)
    assert (line["debate"], line["authorization"], line["deep"]) == ("case-1", "[secret]", [{"api_key": "[secret]"}])
    assert "abcdefgh" not in first + second
    assert "ValueError" in second
    configure_terminal("warning")
    structlog.get_logger().warning("careful", url="http://u:p@host/")
    shown = capsys.readouterr().err
    assert "careful" in shown
    assert "u:p" not in shown
    with pytest.raises(ConfigError, match="shout"):
        configure_terminal("shout")
    assert safe_to_show(None, "info", {"tokens": 5, "prompt_tokens": "7"}) == {"tokens": 5, "prompt_tokens": "7"}


def test_of_equal_log_lines_the_first_is_printed_and_the_others_are_counted() -> None:
    now = 0.0
    numbers: list[dict[str, Any]] = []
    lines = RepeatedLines(lambda: now, numbers.append)

    def log(case: str, **fields: Any) -> Any:
        try:
            return lines(None, "warning", {"event": "ask failed", "level": "warning", "case": case, **fields})
        except structlog.DropEvent:
            return None

    first = log("a", error="empty")
    assert first == {"event": "ask failed", "level": "warning", "case": "a", "error": "empty"}
    assert log("b", error="late") is not None
    assert [log(case, error="empty") for case in "bcd"] == [None] * 3
    now = 61.0
    assert log("e", error="empty") == {**first, "case": "e", "more": 3}
    assert log("f", error="empty") is None
    assert lines.left_out() == [{"event": "ask failed", "level": "warning", "error": "empty", "more": 1}]
    assert lines.left_out() == []
    assert log("a", error="early") is not None
    assert log("b", error="early") is None
    for n in range(1000):
        log("a", error=n)
    assert [(line["error"], line["more"]) for line in numbers] == [("early", 1)], (
        "a number is told before it is forgotten"
    )
    assert log("a", error=999) is None
    assert log("a", error=0) is not None, "only the latest lines are compared"


def test_progress_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from moot.actors.limits.envelopes import EndpointState, LimiterState
    from moot.actors.models.usage_totals import UsageTotals
    from moot.actors.record.progress import Counts

    counts = Counts(finished=9, failed=1, scored=8, correct=6, skipped=3, paid=UsageTotals(12300, 45))
    lines = LineListener(every_s=0.0)
    lines.began(20, 5)
    lines.counts(Counts())
    lines.counts(counts)
    lines.counts(counts)
    lines.ended()
    assert capsys.readouterr().err.splitlines() == [
        "20 cases, 5 of them done",
        "10/20 cases | accuracy 75.0 % | skipped 33.3 % | 12,345 tokens | 1 failed | left 0:00",
    ]
    assert "skipped" in figures(Counts(), gated=True)
    assert "skipped" not in figures(Counts(), gated=False)
    assert [prepare(RunConfig(protocol=name)).gated for name in ("selene", "always-debate")] == [True, False]
    lines.began(1, 0)
    assert capsys.readouterr().err == "1 case\n"
    waits = EndpointState("m", 1, 0, 1, asked_wait_s=431.8, long_waits=1, wait_error="HTTP 429: no quota")
    for _ in range(2):
        lines.limits(LimiterState([waits, EndpointState("n", 1, 0, 0)]))
    lines.counts(Counts())
    first, second = capsys.readouterr().err.splitlines()
    assert first == "m: HTTP 429: no quota"
    assert second.endswith("| a server asks to wait 7:12")
    lines.limits(LimiterState([EndpointState("m", 1, 0, 1)]))
    lines.ended()
    assert capsys.readouterr().err.endswith("| left -\n")
    with open(os.devnull, "w") as nowhere:
        console = Console(force_terminal=True, width=140, record=True, file=nowhere)
        bar = BarListener(console)
        bar.began(20, 5)
        bar.counts(counts)
        bar.limits(LimiterState([EndpointState("m", 1, 0, 1, long_waits=1, wait_error="[secret] [/no]")]))
        bar.ended()
    shown = console.export_text()
    assert "10/20" in shown
    assert "m: [secret] [/no]" in shown


def test_the_reason_of_a_stop_is_printed_once(command: Command) -> None:
    code, out, err = command(*INLINE, "--limit", "2", "--max-tokens", "10", "--out", "stopped")
    assert code == 4
    assert "stopped: 0 of 2 cases done" in err
    assert (out + err).count("--max-tokens 10 does not allow another call") == 1


def test_the_name_of_an_own_protocol_is_the_runs(command: Command) -> None:
    mine = "from moot.protocols.selene.protocol import Selene\nclass Mine(Selene):\n    name = 'mine'\n"
    Path("named_mine.py").write_text(f"{mine}class Unnamed(Selene):\n    pass\n")
    run = [*INLINE, "--limit", "1", "--protocol"]
    for _ in range(2):
        assert command(*run, "named_mine:Mine")[0] == 0
        shown = json.loads(command("show", "runs/mine-sample-s0", "--format", "json")[1])
        assert shown["protocol"] == "mine"
    assert yaml.safe_load(Path("runs/mine-sample-s0/run.yaml").read_text())["protocol"] == "named_mine:Mine"
    command(*run, "named_mine:Unnamed", "--out", "unnamed")
    assert json.loads(command("show", "unnamed", "--format", "json")[1])["protocol"] == "named_mine:Unnamed"
