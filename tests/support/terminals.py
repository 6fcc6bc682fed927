"""Real terminals for tests: a `moot` command in one, and what its person sees and types."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pexpect

SUPPORT = str(Path(__file__).resolve().parent)
PROMPT = "\n> "


def terminal_environment(**more: str) -> dict[str, str]:
    """An environment without editors and without colours, in which the support modules are found."""
    env = {key: value for key, value in os.environ.items() if key not in ("EDITOR", "VISUAL", "RAY_ADDRESS")}
    found = os.pathsep.join(filter(None, [SUPPORT, env.get("PYTHONPATH")]))
    return env | {"PYTHONPATH": found, "TERM": "dumb"} | more


class PseudoTerminal:
    """A `moot` command in a terminal of its own.

    Args:
        folder: in which it runs.
        arguments: of `moot`.
        into: a file that standard output goes to; empty for the terminal.
        env: further variables.

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
        """Wait for a text; returns what came before it, since the last one."""
        self.child.expect_exact(text)
        before = str(self.child.before)
        self._seen += [before, text]
        return before

    def types(self, line: str, prompt: str = PROMPT) -> str:
        """Wait for the prompt and type a line; returns what was shown before the prompt."""
        shown = self.sees(prompt)
        self.child.sendline(line)
        return shown

    def presses(self, control: str, prompt: str = PROMPT) -> str:
        """Wait for the prompt and press Ctrl with a letter; returns what was shown before the prompt."""
        shown = self.sees(prompt)
        self.child.sendcontrol(control)
        return shown

    def ends(self) -> tuple[int, str]:
        """Wait for the end; the exit code and what was shown since the last wait."""
        self.child.expect(pexpect.EOF)
        rest = str(self.child.before)
        self._seen.append(rest)
        self.child.close()
        return int(self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus), rest

    @property
    def all_seen(self) -> str:
        """Everything that was shown so far, as it came."""
        return "".join(self._seen)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *error: Any) -> None:
        self.child.close(force=True)
