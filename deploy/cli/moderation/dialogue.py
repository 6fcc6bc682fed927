"""Prompt for the decision on a form: prints the form, reads lines, and returns the decision or None."""

from __future__ import annotations

import contextlib
import signal
import sys
import termios
from collections.abc import Sequence
from typing import NamedTuple

import click
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from moot.deploy.cli.moderation.live_transcript import DebateTranscript
from moot.deploy.results.report.blocks import beginning
from moot.deploy.results.text import visible, visible_line
from moot.protocols.errors import ConfigError, MootError, unknown_name
from moot.protocols.messages import Decision, Form

with contextlib.suppress(ImportError):
    import readline  # noqa: F401 - adds line editing to `input`

_HELP = """Type an action's number or its first letters, then its text: `set 0.3`, `ask and the costs?`.
  show   the whole debate so far
  quit   leave; run the same command to return to this form (Ctrl-D leaves, too; Ctrl-C also stops the run)"""

_MAX_QUOTED = 40
"""Maximum characters of the input that an error quotes."""


class FormChoice(NamedTuple):
    """Chosen action of a form, with the text typed after it (may be empty)."""

    action: str
    text: str


def parse_choice(line: str, actions: Sequence[str]) -> FormChoice:
    """Parse a line: the action, by its number or by prefixes of its words, then the text.

    >>> parse_choice("set 0.3", ("go on", "set kappa", "end"))
    FormChoice(action='set kappa', text='0.3')
    >>> parse_choice("2 0.3", ("go on", "set kappa", "end"))
    FormChoice(action='set kappa', text='0.3')

    Raises:
        ConfigError: no action matches, or several do.
    """
    typed, names = line.casefold().split(), {action: action.casefold().split() for action in actions}
    if typed and typed[0].isdecimal():
        if not 1 <= int(typed[0]) <= len(actions):
            number = typed[0][:_MAX_QUOTED]
            raise ConfigError(f"there is no action {number}: expected a number from 1 to {len(actions)}")
        return FormChoice(actions[int(typed[0]) - 1], "".join(line.split(maxsplit=1)[1:]).strip())
    for words in range(len(typed), 0, -1):
        by_prefix = [
            action for action, name in names.items() if len(name) >= words and _matches_prefix(typed[:words], name)
        ]
        matches = [action for action in by_prefix if names[action] == typed[:words]] or by_prefix
        if len(matches) > 1:
            quoted = line.strip()[:_MAX_QUOTED]
            raise ConfigError(f"{quoted!r} may be any of {', '.join(matches)}: type more letters, or a number")
        if matches:
            return FormChoice(matches[0], "".join(line.split(maxsplit=words)[words:]).strip())
    raise unknown_name("action", line.strip()[:_MAX_QUOTED], actions)


def _matches_prefix(typed: Sequence[str], name: Sequence[str]) -> bool:
    return all(word.startswith(part) for part, word in zip(typed, name, strict=False))


def prompt_decision(form: Form, transcript: DebateTranscript, console: Console) -> Decision | None:
    """Print the new part of the transcript and the form, and read lines until a decision; None if the person leaves.

    Raises:
        MootError: the record cannot be read.
    """
    transcript.print_new(console)
    console.print(Group(form_text(form), Text("     or help, show, quit")))
    with contextlib.suppress(termios.error, ValueError, OSError):
        # Discard input that was typed before the form was visible.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    while True:
        try:
            line = console.input("> ").strip()
            if line == "quit" and line not in form.actions:
                return None
            if line == "show" and line not in form.actions:
                console.print(transcript.full_transcript())
            elif line not in ("", "help", "?") or line in form.actions:
                return _decision(line, form, console)
            else:
                console.print(Group(_actions(form), Text(_HELP)))
        except EOFError:
            console.print()
            return None
        except MootError as error:
            console.print(Text(visible_line(str(error)), style="red"))


def _decision(line: str, form: Form, console: Console) -> Decision:
    action, text = parse_choice(line, form.actions)
    if not text and form.takes_text(action):
        text = ask_text(action, form, console)
    if not text and form.takes_text(action):
        raise ConfigError(f"no text, so nothing is decided: type the text after `{action}`")
    # Only "understood": the decision itself is printed from the record, before the next form.
    console.print(Text(f"understood: {visible_line(f'{action}: {text}' if text else action)}", style="green"))
    return Decision(action, text)


def ask_text(action: str, form: Form, console: Console) -> str:
    """Read an action's text from the terminal: a line, or the action's draft as edited in the person's editor.

    Returns:
        The text; empty if none was entered.

    Raises:
        ConfigError: the editor fails, or leaves the draft unchanged.
    """
    draft = form.drafts.get(action)
    if draft is None:
        with contextlib.suppress(EOFError):
            return console.input(Text(f"{visible_line(action)}: ")).strip()
        return ""
    # While the editor runs, Ctrl-C is for the editor.
    previous_handler = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        text = (click.edit(visible(draft).rstrip(), require_save=False) or "").strip()
    except (click.ClickException, ValueError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise ConfigError(f"{message}; the text is unchanged: type it after `{action}`, or set EDITOR") from None
    finally:
        signal.signal(signal.SIGINT, previous_handler)
    if text == visible(draft).strip():
        raise ConfigError("the text is unchanged, so nothing is decided")
    return text


def form_text(form: Form) -> RenderableType:
    """Rendered form: title, body and numbered actions. Texts of models are not parsed as markup."""
    parts: list[RenderableType] = [Rule(Text(visible_line(form.title)), align="left")]
    if form.body:
        parts.append(Padding(Text(visible(beginning(form.body, whole=""))), (0, 0, 0, 2), expand=False))
    return Group(*parts, _actions(form))


def _actions(form: Form) -> RenderableType:
    lines = []
    for number, action in enumerate(form.actions, start=1):
        suffix = " (edits the text)" if action in form.drafts else " TEXT" if form.takes_text(action) else ""
        lines.append(f"  {number}  {visible_line(action)}{suffix}")
    return Text("\n".join(lines), style="bold")
