"""Page of the documentation: its fenced blocks and tables, and a reader that executes it.

A page is README.md or a file below docs/. Its fenced blocks are processed in order, in one empty folder per page:

- a block with `file=NAME` in its info string is written to NAME;
- a `python` block without a name is run as a script;
- of a `console` block each line that starts with `$ ` is run; a line that ends in a backslash continues on the next.
  `exit=N` is the expected exit code instead of 0; `not-run="REASON"` skips the block, and so does `needs=MODULE` if
  the module is not installed. Lines of output on the page must be printed, except a progress bar and the wall time;
- a `console` block with `terminal=yes` is a session in a real terminal: its only command is run there, and the text
  after the prompts `> ` and `  | ` is typed.

A command `moot ...`, also with ` > FILE` at its end, and a Python block run in this process, because starting one for
each of two hundred takes longer than most of them run. All other lines run in one bash, and so does everything in a
block with `process=yes`. Ports that a page gives by `--port` are replaced by free ones; processes that it leaves in the
background are killed by their id.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import structlog
from places import ROOT, TESTS

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
"""Every page of the documentation, README first."""
PLAYER = TESTS / "support" / "terminal_session.py"
COMMAND_S = 120
_FENCE = re.compile(r"^```(\w*)[ \t]*(.*)$")
_PORT = re.compile(r"--port (\d+)")
_SHELL = re.compile(r"[|&;<>()$`\n]")


def page_named(name: str) -> Path:
    """Page of that name, without folder and suffix."""
    (found,) = (path for path in PAGES if path.stem == name)
    return found


@dataclass
class FencedBlock:
    """Fenced block: language, rest of its info string, line number and text."""

    language: str
    info: dict[str, str]
    line: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text between the fences."""
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def is_missing(self) -> bool:
        """Whether it needs a module that is not installed."""
        return "needs" in self.info and find_spec(self.info["needs"]) is None

    @property
    def is_run(self) -> bool:
        """Whether the block is run here."""
        return "not-run" not in self.info and not self.is_missing

    def commands(self) -> Iterator[tuple[int, str]]:
        """Line number and text of each command."""
        numbered = iter(enumerate(self.lines, start=self.line + 1))
        for number, line in numbered:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command = f"{command}\n{next(numbered)[1]}"
                yield number, command

    def shown(self) -> list[str]:
        """Lines of output on the page."""
        commands = {line for _, command in self.commands() for line in f"$ {command}".split("\n")}
        return [line for line in self.lines if line not in commands and line.strip()]


def blocks(page: Path) -> list[FencedBlock]:
    """Fenced blocks of a page, in order."""
    found: list[FencedBlock] = []
    open_ = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if open_ and line == "```":
            open_ = False
        elif open_:
            found[-1].lines.append(line)
        elif fence:
            words = shlex.split(fence[2])
            info = {key: value for key, _, value in (word.partition("=") for word in words)}
            found.append(FencedBlock(fence[1], info, number))
            open_ = True
    assert not open_, f"{page.name}: a block is not closed"
    return found


def table(page: Path, heading: str) -> list[list[str]]:
    """Rows of the first table below a heading, without its header."""
    lines = page.read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if re.fullmatch(rf"#+ {re.escape(heading)}", line))
    body = []
    for line in lines[start + 1 :]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            body.append([cell.strip().replace("\\|", "|") for cell in cells])
        elif body or line.startswith("#"):
            break
    assert len(body) > 2, f"{page.name}: no table under {heading!r}"
    return body[2:]


class PageReader:
    """Executes a page in a folder; the output is written to the folder's `.log`.

    Args:
        page: the page.
        folder: an empty folder, which must be the working folder.
    """

    def __init__(self, page: Path, folder: Path) -> None:
        self._page, self._folder = page, folder
        self._ports = {port: str(_free_port()) for port in set(_PORT.findall(page.read_text("utf-8")))}
        self._shell: _Shell | None = None
        self.log = folder / ".log"
        self.log.touch()

    def read(self) -> str:
        """Run everything on the page; returns the output.

        Raises:
            AssertionError: a command ended with another exit code than the page states.
        """
        try:
            for block in blocks(self._page):
                if block.is_run:
                    self._follow(block)
        finally:
            if self._shell is not None:
                self._shell.end()
        return self.log.read_text("utf-8", errors="replace")

    def _follow(self, block: FencedBlock) -> None:
        code, where = int(block.info.get("exit", 0)), f"{self._page.name}:{block.line}"
        apart = "process" in block.info
        name = block.info.get("file")
        if name:
            self._write(self._folder / name, block.text)
        elif "terminal" in block.info:
            session = self._write(self._folder / ".blocks" / str(block.line), block.text)
            self._run(f"python {shlex.quote(str(PLAYER))} {shlex.quote(str(session))}", code, where, apart=True)
        elif block.language == "python":
            script = self._write(self._folder / f"block-{block.line}.py", block.text)
            if apart:
                self._run(f"python {shlex.quote(str(script))}", 0, where, apart=True)
            else:
                self._check(self._script(script), 0, where)
        elif block.language == "console":
            for line, command in block.commands():
                self._run(self._with_free_ports(command), code, f"{self._page.name}:{line}", apart=apart)

    def _write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._with_free_ports(text), "utf-8")
        return path

    def _with_free_ports(self, text: str) -> str:
        for port, free in self._ports.items():
            text = re.sub(rf"\b{port}\b", free, text)
        return text

    def _run(self, command: str, code: int, where: str, *, apart: bool) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"== {where} $ {command}\n")
        words = command.split()
        ours = words[:1] == ["moot"] or words[:3] == ["python", "-m", "moot"]
        plain, _, target = command.replace("\\\n", " ").partition(" > ")
        if ours and not apart and not _SHELL.search(plain + target):
            self._check(self._command(shlex.split(plain), target), code, where)
            return
        self._shell = self._shell or _Shell(self._folder, self.log)
        if command.endswith("&"):
            self._shell.background(command)
            if port := _PORT.search(command):
                _wait_for(int(port[1]))
        else:
            self._check(self._shell.run(command), code, where)

    def _command(self, words: list[str], target: str) -> int:
        from moot.deploy.cli.main import main

        argv = ["moot", *words[3 if words[0] == "python" else 1 :]]
        with _as_a_script(self._folder, self.log, argv), ExitStack() as redirected:
            if target:
                out = redirected.enter_context(open(self._folder / target, "w", encoding="utf-8"))
                redirected.enter_context(redirect_stdout(out))
            try:
                main()
            except SystemExit as ended:
                return _exit_code(ended)

    def _script(self, script: Path) -> int:
        with _as_a_script(self._folder, self.log, [str(script)]):
            try:
                runpy.run_path(str(script), run_name="__main__")
            except SystemExit as ended:
                return _exit_code(ended)
        return 0

    def _check(self, code: int, expected: int, where: str) -> None:
        said = "" if code == expected else self.log.read_text("utf-8", errors="replace")[-6000:]
        assert code == expected, f"{where}: exit code {code}, expected {expected}\n{said}"


@contextmanager
def _as_a_script(folder: Path, log: Path, argv: list[str]) -> Iterator[None]:
    """Context that resembles a new process in the folder: arguments, import path, imported modules and output."""
    before, path, known = sys.argv, list(sys.path), {*sys.modules}
    sys.argv = argv
    sys.path.insert(0, str(folder))
    with (
        log.open("a", encoding="utf-8", buffering=1) as out,
        redirect_stdout(out),
        redirect_stderr(out),
        warnings.catch_warnings(action="ignore"),
    ):
        try:
            yield
        finally:
            sys.argv, sys.path[:] = before, path
            structlog.reset_defaults()
            for name in {*sys.modules} - known:
                if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                    del sys.modules[name]


def _exit_code(ended: SystemExit) -> int:
    return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1


class _Shell:
    """One bash for all lines of a page that are not Python; variables that it exports are exported in this process,
    too."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._exported, self._code = folder / ".exported", folder / ".code"
        with log.open("ab") as out:
            self._bash = subprocess.Popen(
                ["bash"], cwd=folder, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
            )

    def run(self, command: str) -> int:
        """Run a command; returns its exit code."""
        self._code.unlink(missing_ok=True)
        report = "code=$?; env -0 > .exported; echo $code > .code.new; mv .code.new .code"
        self._say(f"{{ {command}\n}} < /dev/null; {report}\n" if "<" not in command else f"{command}\n{report}\n")
        deadline = time.monotonic() + COMMAND_S
        while not self._code.exists():
            assert self._bash.poll() is None, f"bash ended: {command}"
            assert time.monotonic() < deadline, f"took longer than {COMMAND_S} s: {command}"
            time.sleep(0.02)
        self._export()
        return int(self._code.read_text())

    def background(self, command: str) -> None:
        """Start a command that ends in `&`."""
        self._say(f"{command}\n")

    def end(self) -> None:
        """Terminate the shell and every process that it started."""
        self._say("kill $(jobs -p) 2>/dev/null; wait; exit\n")
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        try:
            self._bash.wait(timeout=15)
        except subprocess.TimeoutExpired:
            os.killpg(self._bash.pid, signal.SIGKILL)
            self._bash.wait()

    def _say(self, text: str) -> None:
        assert self._bash.stdin is not None
        self._bash.stdin.write(text.encode())
        self._bash.stdin.flush()

    def _export(self) -> None:
        found = (each.partition("=") for each in self._exported.read_text("utf-8").split("\0") if each)
        mine: Mapping[str, str] = {name: value for name, _, value in found}
        changed = {name: value for name, value in mine.items() if os.environ.get(name) != value}
        os.environ.update(
            {name: value for name, value in changed.items() if name not in ("_", "SHLVL", "PWD", "OLDPWD")}
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + COMMAND_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"nothing listens on port {port}"
            time.sleep(0.05)
