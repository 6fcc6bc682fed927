"""Pseudo-terminals for tests: a `moot` command in one, and what its person sees and types."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pexpect

SUPPORT = str(Path(__file__).resolve().parent)
PROMPT = "\n> "


def terminal_environment(**more: str) -> dict[str, str]:
    """Environment without editor and colours, in which the support modules can be imported."""
    env = {key: value for key, value in os.environ.items() if key not in ("EDITOR", "VISUAL", "RAY_ADDRESS")}
    found = os.pathsep.join(filter(None, [SUPPORT, env.get("PYTHONPATH")]))
    return env | {"PYTHONPATH": found, "TERM": "dumb"} | more


class PseudoTerminal:
    """A `moot` command in its own pseudo-terminal.

    Args:
        folder: working folder of the command.
        arguments: arguments of `moot`.
        into: file of standard output; empty for the terminal.
        env: further environment variables.

    Attributes:
        child: the process and its terminal.
    """

    def __init__(self, folder: Path, *arguments: str, into: str = "", **env: str) -> None:
        self._seen: list[str] = []
        self.child = pexpect.spawn(
            "bash",
            ["-c", f'exec "$0" "$@"{f" > {into}" if into else ""}', sys.executable, "-m", "moot", *arguments],
            cwd=str(folder),
            env=terminal_environment(**env),
            encoding="utf-8",
            timeout=90,
            dimensions=(50, 120),
        )

    def sees(self, text: str) -> str:
        """Wait for a text; returns the output before it, since the last wait."""
        self.child.expect_exact(text)
        before = str(self.child.before)
        self._seen += [before, text]
        return before

    def types(self, line: str, prompt: str = PROMPT) -> str:
        """Wait for the prompt and type a line; returns the output before the prompt."""
        shown = self.sees(prompt)
        self.child.sendline(line)
        return shown

    def presses(self, control: str, prompt: str = PROMPT) -> str:
        """Wait for the prompt and press Ctrl with a letter; returns the output before the prompt."""
        shown = self.sees(prompt)
        self.child.sendcontrol(control)
        return shown

    def ends(self) -> tuple[int, str]:
        """Wait for the end; returns the exit code and the output since the last wait."""
        self.child.expect(pexpect.EOF)
        rest = str(self.child.before)
        self._seen.append(rest)
        self.child.close()
        return int(self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus), rest

    @property
    def all_seen(self) -> str:
        """All output so far, unprocessed."""
        return "".join(self._seen)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *error: Any) -> None:
        self.child.close(force=True)
