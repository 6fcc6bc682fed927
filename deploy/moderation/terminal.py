"""The person at this process's terminal: asked by the session's thread, answered in the main one."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType

from rich.console import Console

from moot.actors.desk import Consultation
from moot.actors.record.progress import Counts
from moot.deploy.running.listener import Listener
from moot.protocols.messages import Decision


class Left(BaseException):
    """Whoever is at the prompt is taken away from it: by Ctrl-C, or because the run is over.

    Not an `Exception`: what reads the terminal must not take it for an error of its own.
    """


class Working(Listener):
    """Says on the terminal that models are at work, while nobody is asked.

    Args:
        console: where.
        quiet: not even then.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._status = console.status("starting")
        self._lock = threading.Lock()
        self._begun, self._over = False, quiet

    def began(self, total: int | None, done: int) -> None:
        """See `Listener.began`."""
        with self._lock:
            self._begun = True
            if not self._over:
                self._status.start()

    def counts(self, counts: Counts) -> None:
        """See `Listener.counts`."""
        self._status.update(f"debating: {counts.replies:,} replies, {counts.tokens_paid:,} tokens")

    def ended(self) -> None:
        """See `Listener.ended`."""
        with self._lock:
            self._over = True
            self._status.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Not a word, while the terminal is the person's."""
        with self._lock:
            self._status.stop()
        try:
            yield
        finally:
            with self._lock:
                if self._begun and not self._over:
                    self._status.start()


class Terminal:
    """A `Person` who sits at this process's terminal. Use it in a `with` of the main thread.

    Args:
        hold: shows a form and gives the decision, or None when the person leaves; called in the main thread.
        working: is silent meanwhile.
    """

    def __init__(self, hold: Callable[[Consultation], Decision | None], working: Working) -> None:
        self._hold, self._working = hold, working
        self._asked: SimpleQueue[tuple[Consultation, Future[Decision | None]]] = SimpleQueue()
        self._at_prompt = False
        self.asked = 0
        """How many forms have been shown."""
        self.gone = False
        """Whether the person has left: what is asked from then on waits for another day."""

    def __enter__(self) -> Terminal:
        self._old = signal.signal(signal.SIGUSR1, self._dismissed)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        signal.signal(signal.SIGUSR1, self._old)

    async def decide(self, consultation: Consultation) -> Decision | None:
        """See `Person.decide`; called on the session's event loop."""
        answer: Future[Decision | None] = Future()
        self._asked.put((consultation, answer))
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            # A read of the terminal is ended by a signal only; away from the prompt this one does nothing.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            raise

    def serve(self, within_s: float) -> None:
        """Let the person answer the next form; returns after so many seconds when there is none."""
        try:
            asked, answer = self._asked.get(timeout=within_s)
        except Empty:
            return
        if not answer.set_running_or_notify_cancel():
            return
        if self.gone:
            answer.set_result(None)
            return
        self.asked += 1
        try:
            with self._working.paused():
                decision = self._attentive(asked)
        except Left:
            return  # the session ends, and with it who waits for the answer
        except BaseException as error:
            answer.set_exception(error)
            return
        self.gone = decision is None
        answer.set_result(decision)

    def _attentive(self, asked: Consultation) -> Decision | None:
        try:
            self._at_prompt = True
            return self._hold(asked)
        finally:
            self._at_prompt = False

    def interrupted(self) -> bool:
        """Ctrl-C was pressed: takes the person away from the prompt, or returns False when nobody is there.

        Raises:
            Left: in the main thread, out of what it reads.
        """
        if self._at_prompt:
            self._at_prompt = False
            raise Left
        return False

    def _dismissed(self, number: int, frame: FrameType | None) -> None:
        self.interrupted()
