"""`moot serve` as its user meets it: the command it prints works, signals drain it, and a kill loses nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import wait_until

from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.tables import read_table
from moot.deploy.cli.main import _command
from moot.deploy.service.inbox_store import InboxStore
from moot.deploy.service.process import changes
from moot.protocols.errors import UserError

MOOT = [sys.executable, "-m", "moot", "serve"]
TOKEN_ENV, TOKEN = "MOOT_SERVE_TEST_TOKEN", "a-long-token-of-the-test"


class ServeProcess:
    """A process of `moot serve`, and everything that it starts."""

    def __init__(self, folder: Path, log: Path, temporary: Path, *options: str) -> None:
        env = {**os.environ, TOKEN_ENV: TOKEN, "RAY_TMPDIR": str(temporary)}
        with log.open("wb") as sink:
            self.process = subprocess.Popen(
                [*MOOT, "--port", "0", "--out", "served", *options], cwd=folder, env=env, stdout=sink, stderr=sink
            )
        self._log, self.temporary = log, temporary
        self._everybody: dict[int, psutil.Process] = {}

    @property
    def said(self) -> str:
        """What it has printed."""
        return self._log.read_text("utf-8", "replace")

    def curl(self) -> str:
        """The command that it prints, once it listens."""
        wait_until(lambda: "curl" in self.said or self.process.poll() is not None, 150, lambda: self.said)
        self._everybody = {each.pid: each for each in psutil.Process(self.process.pid).children(recursive=True)}
        return next(line.strip() for line in self.said.splitlines() if line.strip().startswith("curl"))

    def ask(self, path: str, *options: str) -> Any:
        """One request by curl."""
        place = self.curl().split()[2].partition("/v1/")[0]
        done = subprocess.run(
            ["curl", "-sS", "-H", f"Authorization: Bearer {TOKEN}", *options, place + path],
            capture_output=True, text=True, timeout=90, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    def left(self, *, killed: bool = False) -> list[psutil.Process]:
        """Processes of its that live, some seconds after its end; Ray's own agents need longer to see that their node
        was killed."""
        watched = [each for each in self._everybody.values() if not (killed and self._is_agent(each))]
        _, alive = psutil.wait_procs(watched, timeout=20)
        return alive

    @staticmethod
    def _is_agent(process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return "Agent" in process.name()
        return False

    def end(self) -> None:
        """Leave nobody behind, whatever became of the test."""
        self.process.kill()
        for process in self._everybody.values():
            with suppress(psutil.Error):
                process.kill()
        self.process.wait()


@contextmanager
def serving(folder: Path, name: str, *options: str) -> Iterator[ServeProcess]:
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="moot-", ignore_cleanup_errors=True) as temporary:
        server = ServeProcess(folder, folder / f"{name}.log", Path(temporary), *options)
        try:
            yield server
        finally:
            server.end()


@pytest.mark.needs("program/curl")
@pytest.mark.slow
@pytest.mark.timeout(290)
def test_the_command_that_is_printed_works_and_a_kill_loses_nothing(tmp_path: Path) -> None:
    options = ("--token-env", TOKEN_ENV, "--model", "simulated?latency_ms=1500")
    with serving(tmp_path, "first", *options) as server:
        command = server.curl()
        assert TOKEN not in command
        done = subprocess.run(
            ["bash", "-c", command], env={**os.environ, TOKEN_ENV: TOKEN}, capture_output=True, text=True, timeout=60
        )
        accepted = json.loads(done.stdout)
        server.process.kill()
        server.process.wait()
        assert server.left(killed=True) == []
    with serving(tmp_path, "second", *options, "--drain-s", "0") as server:
        end = server.ask(f"/v1/debates/{accepted['id']}?wait_s=60")
        assert end["status"] == "done"
        body = json.dumps({"question": "is eight a prime", "id": "late"})
        assert server.ask("/v1/debates", "-H", "Content-Type: application/json", "-d", body)["id"] == "late"
        for _ in range(2):  # as from a wrapper, which passes on what the terminal has sent to both
            server.process.terminate()
        assert server.process.wait(timeout=90) == 130
        assert server.left() == []
        assert [path.name for path in server.temporary.rglob("*")] in ([], ["ray"])
        assert server.said.splitlines()[-1].startswith("stopped; 1 interrupted")
        for said in (server.said, (tmp_path / "first.log").read_text()):
            assert "Traceback" not in said
            assert TOKEN not in said
    verdicts = read_table(tmp_path / "served" / "debates", "verdicts", []).to_pylist()
    assert [row["case_id"] for row in verdicts] == [accepted["id"]]
    with closing(InboxStore(tmp_path / "served" / "inbox")) as inbox:
        assert [key.id for key in inbox.pending("debates")] == ["late"]


def serve(*options: str) -> None:
    """The command in this process; what is wrong is raised."""
    _command()(["serve", *options], standalone_mode=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "--token-env"),
        (("--protocol", "selen"), "did you mean 'selene'"),
        (("--address", "ray://somewhere:10001"), "ray job submit"),
        (("--max-queued", "-1"), "--max-queued"),
        (("--port", "65536"), "--port 65536"),
        (("--out", "s3://bucket/served"), "need a local folder"),
    ],
)
def test_an_invalid_configuration_is_reported_before_anything_starts(
    options: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=said):
        serve(*options)
    assert not any(tmp_path.iterdir())


def test_the_folder_of_a_run_is_no_place_for_a_servers_records(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("protocol: selene\n")
    with pytest.raises(UserError, match="contains a run"):
        serve("--out", str(tmp_path))


def test_a_bound_is_not_taken_for_each_of_several_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("moot.deploy.service.process.run_server", lambda *_: 0)
    (tmp_path / "prices.yaml").write_text("models:\n  simulated: {input: 1.0, output: 1.0}\n")
    for flag, value in (("--max-cost", "5"), ("--rpm", "60"), ("--max-tokens", "100")):
        options = (flag, value, "--prices", "prices.yaml")
        with pytest.raises(UserError, match=flag) as error:
            serve(*options, "--checks", "--judge-rubric", "reasoning")
        assert "\n" not in str(error.value)
        serve(*options)
    (tmp_path / "each.yaml").write_text("debates: {max_tokens: 100}\nchecks: {max_tokens: 10}\n")
    serve("each.yaml")


def test_a_port_that_is_taken_and_a_record_that_is_owned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.service.process._LET_GO_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UserError, match="cannot listen on"):
        serve("--out", str(tmp_path / "x"), "--port", str(taken.getsockname()[1]))
    owner = Ownership.acquire(RunFolder(tmp_path / "run" / "debates"))
    with pytest.raises(UserError, match="another process"):
        serve("--out", str(tmp_path / "run"), "--engine", "inline", "--port", "0")
    owner.release()


def test_each_change_is_reported_once() -> None:
    down, spent = {"debates": "down"}, {"debates": "spent"}
    told = [({}, down), (down, down), (down, spent), (spent, {"checks": "down"})]
    assert [list(changes(before, now)) for before, now in told] == [
        ["debates are refused: down"],
        [],
        ["debates are refused: spent"],
        ["checks are refused: down", "debates are accepted again"],
    ]


@pytest.mark.slow
def test_without_the_extra_it_says_which_one(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text("import sys\nsys.modules['fastapi'] = None\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "hidden")}
    done = subprocess.run([*MOOT, "--port", "0"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.strip() == "error: `moot serve` needs an extra: pip install 'moot[serve]'"
