"""Holds a debate that the person at the terminal moderates, and tells them how it ended."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from moot.deploy.cli.run import shown, tell, tell_interrupted, tell_stopping
from moot.deploy.moderation.dialogue import Dialogue
from moot.deploy.moderation.terminal import Terminal, Working
from moot.deploy.reading.document.read import document_of
from moot.deploy.reading.report.render import report_text
from moot.deploy.reading.show import debate_blocks
from moot.deploy.reading.transcripts.blocks import ending
from moot.deploy.reading.transcripts.transcript import transcript
from moot.deploy.running.interrupt import hold_in_thread
from moot.deploy.running.outcome import Run
from moot.deploy.running.prepare import Prepared
from moot.deploy.running.session import Session
from moot.deploy.running.single import CASE_ID


def hold_moderated(prepared: Prepared, *, quiet: bool) -> Run:
    """Hold a debate with the person at the terminal as its moderator; everything is said on stderr.

    Args:
        quiet: not to say that models are at work.

    Raises:
        UserError: something is wrong with what was asked for; nothing has been written then.
        RecordError: the record cannot be read or written.
    """
    console = Console(stderr=True)
    working = Working(console, quiet=quiet)
    dialogue = Dialogue(prepared.folder, console)
    with Terminal(dialogue.hold, working) as terminal:
        session = Session(prepared, working, terminal)

        def stopping() -> None:
            if not terminal.interrupted():
                tell_stopping(session)

        if prepared.simulated:
            console.print(Text("simulated models", style="bold yellow"))
        console.print(Text(f"record: {shown(prepared)}"))
        done = hold_in_thread(session, on_signals=stopping, attend=terminal.serve)
    _tell_end(done, prepared, dialogue, console, asked=terminal.asked)
    return done


def _tell_end(done: Run, prepared: Prepared, dialogue: Dialogue, console: Console, *, asked: int) -> None:
    if done.status == "interrupted":
        print(file=sys.stderr)
        tell_interrupted(done, prepared)
        return
    if done.status == "waiting":
        print("left: the debate waits for you; the same command comes back to it", file=sys.stderr)
        return
    tell(done, prepared, quiet=True)
    if done.done:
        if not asked and done.worked:
            console.print(Text("nobody was asked anything: this protocol did not consult a person"))
        debate = transcript(prepared.folder, CASE_ID)
        if document_of(debate) is None:
            dialogue.tell_news(CASE_ID)
            console.print(report_text(ending(debate)))
        else:
            console.print(report_text(debate_blocks(debate)))
    console.print(Text(f"next: moot show {shown(prepared)} {CASE_ID}"))
