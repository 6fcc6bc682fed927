"""`moot decide`: a person's decisions for the waiting debates of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moot.deploy.cli import options

if TYPE_CHECKING:
    from moot.protocols.messages import Form


def decide(
    folder: options.Folder,
    case: Annotated[str | None, typer.Argument(help="Id of a waiting case (default: list all).")] = None,
    answer: Annotated[
        list[str] | None,
        typer.Argument(help="Action of its form, by number or first letters, then its text in quotes."),
    ] = None,
    text: Annotated[str | None, typer.Option(help="Text of the decision; - reads standard input.")] = None,
) -> None:
    """Record the decision that a debate waits for, or list pending decisions.

    The text of an action is given after the action or by --text, or is read from the terminal.
    """
    from moot.deploy.cli.moderation.dialogue import parse_choice
    from moot.deploy.results.text import visible_line
    from moot.deploy.runs.decide import pending_form
    from moot.deploy.runs.decide import record_decision as decided
    from moot.protocols.errors import ConfigError

    if case is None:
        _list(folder)
        return
    pending = pending_form(folder, case)
    if not answer:
        _show(pending.form)
        return
    action, typed = parse_choice(" ".join(answer), pending.form.actions)
    if typed and text is not None:
        raise ConfigError("the text is given twice, after the action and by --text: leave one out")
    given = sys.stdin.read().strip() if text == "-" else text if text is not None else typed
    if not given and pending.form.takes_text(action) and sys.stdin.isatty():
        given = _text_from_terminal(action, pending.form)
    decided(folder, case, action, given)
    decision = f"{action}, with the text: {given}" if given else action
    print(f"recorded for {visible_line(case)}: {visible_line(decision)}")
    print("to resume, repeat the command that started the run", file=sys.stderr)


def _list(folder: Path) -> None:
    from moot.actors.record.store.mirror import display_name
    from moot.deploy.results.text import visible_line
    from moot.deploy.runs.decide import answer_forms, decide_command, pending_forms

    forms = pending_forms(folder)
    if not forms:
        print("no pending decisions", file=sys.stderr)
    for each in forms:
        print(visible_line(f"{each.case_id}: {each.form.title} [{'|'.join(each.form.actions)}]"))
    if forms:
        example = next((action for each in forms for action in answer_forms(each.form)), "ACTION")
        print(f"to answer: {decide_command(display_name(folder), forms[0].case_id, example)}", file=sys.stderr)


def _show(form: Form) -> None:
    from rich.console import Console

    from moot.deploy.cli.moderation.dialogue import form_text

    Console().print(form_text(form))


def _text_from_terminal(action: str, form: Form) -> str:
    from rich.console import Console

    from moot.deploy.cli.moderation.dialogue import ask_text

    return ask_text(action, form, Console(stderr=True))
