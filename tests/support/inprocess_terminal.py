"""A `moot` command in this process at a pseudo-terminal: faster than a process, but without signals and line
editing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pexpect
import pytest
from pexpect.fdpexpect import fdspawn
from terminals import PseudoTerminal

from moot.deploy.cli import main as cli

Script = Callable[[PseudoTerminal], None]
"""What a person does at a terminal, up to `ends()`."""


class _Here(PseudoTerminal):
    def __init__(self, master: int) -> None:
        self._seen: list[str] = []
        self.code = 0
        self.child = fdspawn(master, encoding="utf-8", timeout=90)

    def ends(self) -> tuple[int, str]:
        """See `PseudoTerminal.ends`."""
        self.child.expect(pexpect.EOF)
        rest = str(self.child.before)
        self._seen.append(rest)
        return self.code, rest


def run_conversation(script: Script, folder: Path, *arguments: str, into: str = "", **env: str) -> None:
    """Run a command in the main thread while a script answers it; a script that fails closes the terminal.

    Args:
        script: the script; runs in a thread.
        folder: working folder of the command.
        arguments: arguments of `moot`.
        into: file of standard output; empty for the terminal.
        env: further environment variables.
    """
    master, slave = os.openpty()
    here = _Here(master)
    with pytest.MonkeyPatch.context() as patch, ExitStack() as opened, ThreadPoolExecutor(1) as thread:
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "argv", ["moot", *arguments])
        for name in ("EDITOR", "VISUAL", "RAY_ADDRESS"):
            patch.delenv(name, raising=False)
        for name, value in {"TERM": "dumb", "COLUMNS": "120", "LINES": "50", **env}.items():
            patch.setenv(name, value)
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            where = folder / into if into and name == "stdout" else os.dup(slave)
            stream = opened.enter_context(open(where, mode, buffering=1, encoding="utf-8"))
            patch.setattr(sys, name, stream)
        answering = thread.submit(_answering, script, here, master)
        try:
            with pytest.raises(SystemExit) as ended:
                cli.main()
            here.code = int(ended.value.code or 0)
        finally:
            opened.close()
            os.close(slave)
            answering.result()


def _answering(script: Script, here: _Here, master: int) -> None:
    try:
        script(here)
    finally:
        os.close(master)
