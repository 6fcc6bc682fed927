"""Player of a session on a page: runs the command after `$ ` in a real terminal, and types the text after prompts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pexpect

PROMPTS = ("> ", "  | ")
LINES, COLUMNS = 50, 88


def run_session(session: str) -> int:
    """Run the session's command and type its lines; returns the exit code. The output goes to standard output."""
    command, *lines = session.splitlines()
    child = pexpect.spawn(
        "bash",
        ["-c", command.removeprefix("$ ")],
        # Without both of them rich takes a dumb terminal to have 80 columns.
        env=os.environ | {"TERM": "dumb", "LINES": str(LINES), "COLUMNS": str(COLUMNS)},
        encoding="utf-8",
        timeout=100,
        dimensions=(LINES, COLUMNS),
    )
    child.logfile_read = sys.stdout
    for line in lines:
        prompt = next((each for each in PROMPTS if f"{line} ".startswith(each)), None)
        if prompt is not None:
            child.expect_exact(f"\n{prompt}")
            child.sendline(line[len(prompt) :])
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus if child.exitstatus is not None else 1)


if __name__ == "__main__":
    sys.exit(run_session(Path(sys.argv[1]).read_text("utf-8")))
