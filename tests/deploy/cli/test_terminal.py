"""The hand-over between a session's thread and the main one, in which a person answers."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

from moot.actors.debate.pending_decisions import Consultation
from moot.deploy.cli.moderation.terminal import ModeratorTerminal
from moot.protocols.errors import RecordError
from moot.protocols.messages import Decision, Form

ASKED = [Consultation(f"c{number}", 0, "review", Form("?")) for number in range(3)]
Answers = list[Decision | BaseException | None]


def _answers(
    terminal: ModeratorTerminal, asked: list[Consultation], cancel_when: threading.Event | None = None
) -> Answers:
    """What each consultation got, asked all at once on a loop of another thread, while this one serves."""
    got: Answers = []

    async def ask() -> None:
        tasks = [asyncio.ensure_future(terminal.decide(one)) for one in asked]
        if cancel_when is not None:
            await asyncio.to_thread(cancel_when.wait)
            for task in tasks:
                task.cancel()
        got.extend(await asyncio.gather(*tasks, return_exceptions=True))

    session = threading.Thread(target=lambda: asyncio.run(ask()))
    session.start()
    while session.is_alive():
        terminal.answer_next(0.01)
    session.join()
    return got


def test_who_has_left_is_not_asked_again() -> None:
    with ModeratorTerminal(lambda asked: None) as terminal:
        assert _answers(terminal, ASKED) == [None, None, None]
    assert (terminal.asked, terminal.gone) == (1, True)


def test_an_error_reaches_the_run() -> None:
    def hold(asked: Consultation) -> Decision:
        raise RecordError("the record is gone")

    with ModeratorTerminal(hold) as terminal:
        (error,) = _answers(terminal, ASKED[:1])
    assert isinstance(error, RecordError)


def test_the_end_of_the_run_takes_the_person_from_the_prompt() -> None:
    """Whatever is read there blocks: only a signal ends it; and one that comes later does nothing."""
    at_prompt, left = threading.Event(), []

    def hold(asked: Consultation) -> Decision:
        try:
            at_prompt.set()
            time.sleep(20)
        except BaseException as error:
            left.append(type(error).__name__)
            raise
        left.append("nobody did")
        return Decision("go on")

    with ModeratorTerminal(hold) as terminal:
        got = _answers(terminal, ASKED, cancel_when=at_prompt)
        signal.raise_signal(signal.SIGUSR1)
        assert not terminal.interrupt()
    assert [type(one) for one in got] == [asyncio.CancelledError] * 3
    assert set(left) == {"PromptInterrupted"}


def test_an_interruption_that_the_read_held_back_is_repeated() -> None:
    """As when a signal arrives just before the read blocks: Python notices it only at the next signal."""
    at_prompt = threading.Event()
    left: list[str] = []

    def hold(asked: Consultation) -> Decision:
        while len(left) < 2:
            try:
                at_prompt.set()
                time.sleep(60)
            except BaseException as error:
                left.append(type(error).__name__)
        raise RecordError("left")

    with ModeratorTerminal(hold) as terminal:
        _answers(terminal, ASKED[:1], cancel_when=at_prompt)
    assert left == ["PromptInterrupted"] * 2
