"""A text of several lines from a person: in their editor, or line by line."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from moot.deploy.reading.text import visible
from moot.protocols.errors import ConfigError

_LAST_LINE = "."


def editor_command() -> list[str]:
    """The person's editor as `VISUAL` or `EDITOR` names it; empty when neither does.

    Raises:
        ConfigError: it cannot be read as a command.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        return shlex.split(named)
    except ValueError as error:
        raise ConfigError(f"EDITOR {named!r}: not a command ({error})") from None


def edited(command: list[str], draft: str) -> str:
    """The draft as it stands after the editor was closed.

    Raises:
        ConfigError: the editor cannot be started or fails, or what it leaves is not UTF-8 text.
    """
    with TemporaryDirectory(prefix="moot-") as folder:
        file = Path(folder) / "draft.txt"
        file.write_text(f"{visible(draft).rstrip()}\n", "utf-8")
        try:
            with _leaving_signals_to_the_editor():
                done = subprocess.run([*command, str(file)], check=False)
            if done.returncode:
                raise ConfigError(f"{command[0]} failed (exit {done.returncode}): the text stays as it was")
            return file.read_text("utf-8").strip()
        except OSError as error:
            why = (error.strerror or "it cannot be started").lower()
            raise ConfigError(f"EDITOR {command[0]!r}: {why}; the text stays as it was") from None
        except UnicodeDecodeError:
            raise ConfigError("the edited text is not UTF-8: the text stays as it was") from None


@contextmanager
def _leaving_signals_to_the_editor() -> Iterator[None]:
    """Ctrl-C means the editor's own, while it has the terminal."""
    old = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)


def typed_lines(read: Callable[[str], str]) -> str:
    """Lines up to an empty one, a dot alone or the end of the input.

    Args:
        read: gives a line for a prompt; raises EOFError at the end.
    """
    lines: list[str] = []
    while True:
        try:
            line = read("  | ")
        except EOFError:
            break
        if line.strip() in ("", _LAST_LINE):
            break
        lines.append(line.rstrip())
    return "\n".join(lines).strip()
