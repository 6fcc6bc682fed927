"""The conversation over one form: it is shown, lines are read, and at the end there is a decision or none."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from moot.actors.desk import Consultation
from moot.deploy.moderation.choosing import choose
from moot.deploy.moderation.story import Story
from moot.deploy.reading.text import visible, visible_line
from moot.protocols.errors import ConfigError, MootError
from moot.protocols.messages import Decision, Form

_PROMPT = "> "
_OTHERS = "     or help, show, quit"
_HELP = """Type a number, or the beginning of an action; what follows is its text: `set 0.3`, `ask and the costs?`.
  show      the debate so far, whole
  show 3    the turn with that number, whole
  help      this
  quit      leave; the same command comes back to this form (so does Ctrl-D; Ctrl-C stops the run, too)"""


def read_line(prompt: str) -> str:
    """A line from the terminal, with editing where Python has it. Raises EOFError at its end."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - gives `input` its editing
    if sys.stdout.isatty():
        return input(prompt)
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def forget_typed_ahead() -> None:
    """Drop what was typed before it could be known what it would answer."""
    with contextlib.suppress(termios.error, ValueError, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


class Dialogue:
    """Talks with a person about the forms of a run's debates.

    Args:
        folder: the run's folder.
        console: where everything is written.
        read: gives a line for a prompt; raises EOFError when the person leaves.
    """

    def __init__(self, folder: Path, console: Console, read: Callable[[str], str] = read_line) -> None:
        self._folder, self._console, self._read = folder, console, read
        self._stories: dict[str, Story] = {}

    def hold(self, asked: Consultation) -> Decision | None:
        """Show what has happened and the form, until there is a decision; None when the person leaves.

        Raises:
            MootError: the record cannot be read.
        """
        story, form = self.story(asked.case_id), asked.form
        self.tell_news(asked.case_id)
        self._console.print(Group(form_text(form), Text(_OTHERS)))
        forget_typed_ahead()
        while True:
            try:
                line = self._read(_PROMPT).strip()
            except EOFError:
                self._console.print()
                return None
            if line == "quit" and line not in form.actions:
                return None
            try:
                decision = self._understood(line, form, story)
            except MootError as error:
                self._console.print(Text(visible_line(str(error)), style="red"))
                continue
            if decision is not None:
                return decision

    def story(self, case_id: str) -> Story:
        """What is told of a debate."""
        return self._stories.setdefault(case_id, Story(self._folder, case_id))

    def tell_news(self, case_id: str) -> None:
        """Show what has happened in a debate since the last time."""
        news = self.story(case_id).news()
        if news is not None:
            self._console.print(news)

    def _understood(self, line: str, form: Form, story: Story) -> Decision | None:
        """What a line decides; None when it only asked for something to be shown."""
        word, _, rest = line.partition(" ")
        if line in form.actions:
            word = ""
        if not line or line in ("help", "?"):
            self._console.print(Group(_actions(form), Text(_HELP if line else _OTHERS)))
        elif word == "show" and not rest.strip():
            self._console.print(story.whole())
        elif word == "show" and rest.strip().isdecimal():
            self._console.print(story.turn(int(rest)))
        else:
            return self._decision(line, form)
        return None

    def _decision(self, line: str, form: Form) -> Decision | None:
        choice = choose(line, form.actions)
        text = choice.text
        if not text and form.takes_text(choice.action):
            text = ask_text(choice.action, form, self._console, self._read)
            if not text:
                self._console.print(Text("no text, so nothing is decided", style="red"))
                return None
        said = f"{choice.action}: {text}" if text else choice.action
        # That it is decided is told from the record, where the person reads it before the next form.
        self._console.print(Text(f"understood: {visible_line(said)}", style="green"))
        return Decision(choice.action, text)


def ask_text(action: str, form: Form, console: Console, read: Callable[[str], str] = read_line) -> str:
    """The text of an action from the person at the terminal: a line, or the action's draft as they change it.

    Empty when they give none.

    Raises:
        ConfigError: their editor does not do what it should, or the draft comes back as it was.
    """
    draft = form.drafts.get(action)
    if draft is None:
        with contextlib.suppress(EOFError):
            return read(f"{visible_line(action)}: ").strip()
        return ""
    if not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        told = "type the whole text anew; an empty line or a dot alone ends it (at once: nothing changes). Now it is:"
        console.print(Group(Text(told), Padding(Text(visible(draft)), (0, 0, 0, 4), expand=False)))
        return _typed_lines(read)
    text = _edited(draft)
    if text == visible(draft).strip():
        raise ConfigError("the text is what it was, so nothing is decided")
    return text


def _edited(draft: str) -> str:
    """The draft as it stands after the editor was closed; Ctrl-C means the editor's own, while it has the terminal."""
    old = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        return (click.edit(visible(draft).rstrip(), require_save=False) or "").strip()
    except (click.ClickException, ValueError) as error:
        said = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise ConfigError(f"{said}; the text stays as it was") from None
    finally:
        signal.signal(signal.SIGINT, old)


def _typed_lines(read: Callable[[str], str]) -> str:
    """Lines up to an empty one, a dot alone or the end of the input."""
    lines: list[str] = []
    with contextlib.suppress(EOFError):
        while (line := read("  | ").rstrip()).strip() not in ("", "."):
            lines.append(line)
    return "\n".join(lines).strip()


def form_text(form: Form) -> RenderableType:
    """A form as it is shown: title, body and numbered actions; whatever models wrote is plain text."""
    parts: list[RenderableType] = [Rule(Text(visible_line(form.title)), align="left")]
    if form.body:
        parts.append(Padding(Text(visible(form.body)), (0, 0, 0, 2), expand=False))
    return Group(*parts, _actions(form))


def _actions(form: Form) -> RenderableType:
    lines = []
    for number, action in enumerate(form.actions, start=1):
        wants = " (edits the text)" if action in form.drafts else " TEXT" if form.takes_text(action) else ""
        lines.append(f"  {number}  {visible_line(action)}{wants}")
    return Text("\n".join(lines), style="bold")
