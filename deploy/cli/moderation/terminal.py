"""Interactive moderation at this process's terminal: the session's thread requests decisions, the main one prompts."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType

from rich.console import Console
from rich.status import Status
from rich.text import Text

from moot.actors.debate.pending_decisions import Consultation
from moot.actors.record.progress import Counts
from moot.deploy.cli.console import folder_as_given, report_interrupted, report_outcome, report_stopping
from moot.deploy.cli.moderation.dialogue import prompt_decision
from moot.deploy.cli.moderation.live_transcript import DebateTranscript
from moot.deploy.results.protocol_parts import document_of
from moot.deploy.results.report.render import report_text
from moot.deploy.results.text import shell_path
from moot.deploy.results.transcript import build_transcript
from moot.deploy.results.transcript_blocks import ending_blocks
from moot.deploy.runs.interruption import run_in_thread
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.session import Session
from moot.deploy.runs.single_debate import CASE_ID
from moot.protocols.messages import Decision

_WAKE_S = 0.25
"""Seconds between the signals that interrupt the read of the terminal."""


class PromptInterrupted(BaseException):
    """Interruption of the prompt, by Ctrl-C or by the end of the run.

    Not an `Exception`, so that code that reads the terminal does not handle it as an error of its own.
    """


class ModeratorTerminal(AbstractContextManager["ModeratorTerminal"]):
    """`Person` at this process's terminal. Use it as a context manager in the main thread.

    Args:
        prompt: shows a form and returns the decision, or None when the person leaves; called in the main thread.
    """

    def __init__(self, prompt: Callable[[Consultation], Decision | None]) -> None:
        self._prompt = prompt
        self._asked: SimpleQueue[tuple[Consultation, Future[Decision | None]]] = SimpleQueue()
        self._at_prompt: Future[Decision | None] | None = None
        self._interrupted_at_s: float | None = None
        self._withdrawn: set[Future[Decision | None]] = set()
        self.asked = 0
        """Number of forms shown."""
        self.gone = False
        """Whether the person has left: later forms stay pending."""

    def __enter__(self) -> ModeratorTerminal:
        self._previous_handler = signal.signal(signal.SIGUSR1, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        signal.signal(signal.SIGUSR1, self._previous_handler)

    async def decide(self, consultation: Consultation) -> Decision | None:
        """See `Person.decide`; called on the session's event loop."""
        answer: Future[Decision | None] = Future()
        self._asked.put((consultation, answer))
        decided = asyncio.wrap_future(answer)
        try:
            while not (await asyncio.wait([decided], timeout=_WAKE_S))[0]:
                self._wake()
            return decided.result()
        except asyncio.CancelledError:
            self._withdrawn.add(answer)
            while not answer.cancel() and self._at_prompt is answer:
                self._wake()
                await asyncio.sleep(_WAKE_S)
            raise
        finally:
            self._withdrawn.discard(answer)

    @staticmethod
    def _wake() -> None:
        """Interrupt the main thread's read of the terminal, so that Python runs the handlers of pending signals.

        Python leaves a signal pending that arrives between its last check and the read.
        """
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def answer_next(self, within_s: float) -> None:
        """Prompt for the next form; returns after `within_s` seconds if there is none.

        Errors of the prompt are raised in `decide`, not here.
        """
        try:
            asked, answer = self._asked.get(timeout=within_s)
        except Empty:
            return
        try:
            # before it is taken, so that whoever withdraws it meanwhile sees that it may be prompted for
            self._at_prompt, self._interrupted_at_s = answer, None
            if not answer.set_running_or_notify_cancel():
                return
            if self.gone:
                answer.set_result(None)
                return
            self.asked += 1
            decision = self._prompt(asked)
        except PromptInterrupted:
            return  # the session ends, and nothing awaits the answer
        except BaseException as error:
            answer.set_exception(error)
            return
        finally:
            self._at_prompt = None
        self.gone = decision is None
        answer.set_result(decision)

    def interrupt(self) -> bool:
        """Interrupt the prompt; returns False if there is none. Called by signal handlers in the main thread.

        Raises:
            PromptInterrupted: there is a prompt; raised out of its read.
        """
        if self._at_prompt is None:
            return False
        self._interrupted_at_s = time.monotonic()
        raise PromptInterrupted

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        since_s = self._interrupted_at_s
        if since_s is None:
            if self._at_prompt in self._withdrawn:
                self.interrupt()
        elif time.monotonic() - since_s > _WAKE_S / 2:
            self.interrupt()  # something held the exception back: it is raised again


class _ProgressNote(Listener):
    """Listener that shows progress while no form is shown."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def counts(self, counts: Counts) -> None:
        """See `Listener.counts`."""
        self._status.update(f"debating: {counts.paid.calls:,} replies, {counts.paid.tokens:,} tokens")


def run_moderated(prepared: Prepared, *, quiet: bool) -> Run:
    """Run a debate with the person at the terminal as its moderator; all output is on stderr.

    Args:
        prepared: the run.
        quiet: whether progress text is omitted.

    Raises:
        UserError: the request is invalid; nothing was written.
        RecordError: the record cannot be read or written.
    """
    console, transcript = Console(stderr=True), DebateTranscript(prepared.folder, CASE_ID)

    def prompt(asked: Consultation) -> Decision | None:
        status.stop()
        try:
            return prompt_decision(asked.form, transcript, console)
        finally:
            status.start()

    def stopping() -> None:
        if not terminal.interrupt():
            report_stopping(session)

    if prepared.simulated:
        console.print(Text("simulated models", style="bold yellow"))
    console.print(Text(f"record: {folder_as_given(prepared)}"))
    with Console(stderr=True, quiet=quiet).status("starting") as status, ModeratorTerminal(prompt) as terminal:
        session = Session(prepared, _ProgressNote(status), terminal)
        done = run_in_thread(session, on_signals=stopping, attend=terminal.answer_next)
    _report_end(done, prepared, transcript, console, asked=terminal.asked)
    return done


def _report_end(done: Run, prepared: Prepared, transcript: DebateTranscript, console: Console, *, asked: int) -> None:
    if done.status == "interrupted":
        console.print()
        report_interrupted(done, prepared)
        return
    if done.status == "waiting":
        console.print(Text("left: the debate is waiting; run the same command to return to it"))
        return
    report_outcome(done, prepared, quiet=True)
    if done.done:
        if not asked and done.worked:
            console.print(Text("no decision was requested: this protocol did not consult a person"))
        debate = build_transcript(prepared.folder, CASE_ID)
        if document_of(debate) is None:
            transcript.print_new(console)
            console.print(report_text(ending_blocks(debate)))
        else:
            console.print(transcript.full_transcript())
    console.print(Text(f"next: moot show {shell_path(folder_as_given(prepared))} {CASE_ID}"))
