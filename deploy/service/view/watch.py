"""Session of a run whose page is served from its own process, with data that only this process has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from moot.actors.debate.pending_decisions import Consultation
from moot.actors.limits.envelopes import EndpointState, LimiterState
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.signals import Signals
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.session import Session
from moot.deploy.service.errors import RequestError
from moot.deploy.service.listener import listening_socket, serve_on_socket
from moot.deploy.service.view.actions import STOPPING, DecisionBody
from moot.deploy.service.view.app import make_view
from moot.deploy.service.view.catalogue import RunCatalogue
from moot.deploy.service.view.followed import OwnProcess
from moot.deploy.service.view.form_context import FormContexts
from moot.deploy.service.view.process import LOOPBACK, address_of, page_token
from moot.protocols.errors import ConfigError, MootError, unknown_name
from moot.protocols.messages import Decision


class PagePerson:
    """Person at the run's page: pending forms, each until it is answered.

    Args:
        changed: receives the number of pending forms when it changes.
    """

    def __init__(self, changed: Callable[[int], object]) -> None:
        self._changed = changed
        self._asked: dict[str, tuple[Consultation, asyncio.Future[Decision]]] = {}

    async def decide(self, consultation: Consultation) -> Decision | None:
        """See `Person.decide`."""
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._asked[consultation.case_id] = (consultation, answer)
        self._changed(len(self._asked))
        try:
            return await answer
        finally:
            self._asked.pop(consultation.case_id, None)
            self._changed(len(self._asked))

    def pending(self) -> list[Consultation]:
        """Pending forms."""
        return [asked for asked, _ in self._asked.values()]

    def answer(self, body: DecisionBody) -> None:
        """Answer a form.

        Raises:
            ConfigError: the case has no such form, the form no such action, or the action lacks its text.
        """
        if body.case not in self._asked:
            raise unknown_name("waiting case", body.case, sorted(self._asked))
        asked, answer = self._asked[body.case]
        if body.action not in asked.form.actions:
            raise unknown_name(f"action for {body.case}", body.action, asked.form.actions)
        if not body.text.strip() and asked.form.takes_text(body.action):
            raise ConfigError(f"{body.case}: the action {body.action!r} needs a text")
        if not answer.done():
            answer.set_result(Decision(body.action, body.text))


class WatchedSession:
    """Session with a page, on a free port of this machine, from the first debate to the run's end.

    Args:
        prepared: the run.
        listener: also receives the session's events.
        say: receives the line with the page's address.
    """

    def __init__(self, prepared: Prepared, listener: Listener, say: Callable[[str], object]) -> None:
        self._prepared, self._say = prepared, say
        self._relay = _Relay(listener)
        self._person = PagePerson(self._relay.waiting) if prepared.config.attended else None
        self._session = Session(prepared, self._relay, self._person)

    def stop(self) -> None:
        """See `Session.stop`."""
        self._session.stop()

    @property
    def is_running(self) -> bool:
        """See `Session.is_running`."""
        return self._session.is_running

    async def run(self) -> Run:
        """Run the session. Raises like `Session.run`."""
        serving = asyncio.create_task(self._serve())
        try:
            return await self._session.run()
        finally:
            self._relay.has_ended.set()
            if not self._relay.has_begun.is_set():
                serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

    async def _serve(self) -> None:
        """Serve the page; where that fails, the run continues without it."""
        await self._relay.has_begun.wait()
        try:
            await self._serve_page()
        except (MootError, OSError) as error:
            self._say(f"the run cannot be watched: {error}")

    async def _serve_page(self) -> None:
        prepared, token = self._prepared, page_token(LOOPBACK, 0)
        control = _SessionControl(self._session, self._relay, self._person, self._say, FormContexts(prepared.folder))
        catalogue = RunCatalogue(prepared.folder)
        view = make_view(catalogue, token, OwnProcess(control, str(prepared.config.out)))
        with listening_socket(LOOPBACK, 0) as listening:
            async with serve_on_socket(view, listening):
                self._say(f"watch the run at {address_of(listening, token)}")
                await self._relay.has_ended.wait()
                await view.close()
        await catalogue.close()


class _SessionControl:
    """Control of this process's run."""

    def __init__(
        self,
        session: Session,
        relay: _Relay,
        person: PagePerson | None,
        say: Callable[[str], object],
        contexts: FormContexts,
    ) -> None:
        self._session, self._relay, self._person, self._say, self._contexts = session, relay, person, say, contexts
        self._is_stopping = False

    async def beside(self) -> Mapping[str, Any]:
        """See `RunControl.beside`."""
        state = self._relay.state
        budgets = [
            {"name": each.name, "cap": each.cap, "left": max(0.0, each.cap - each.used)} for each in state.budgets
        ]
        if self._relay.has_ended.is_set():
            return {"can_stop": False, "budgets": budgets, "limits": []}
        limits = [{"endpoint": each.endpoint, "words": limit_words(each)} for each in state.endpoints]
        phase = "Stopping" if self._is_stopping else "Under way" if self._session.is_running else "Starting"
        waiting = {} if self._person is None else {"waiting": len(self._person.pending())}
        return {"can_stop": not self._is_stopping, "budgets": budgets, "limits": limits, "phase": phase, **waiting}

    async def stop(self) -> str:
        """See `RunControl.stop`."""
        if not self._is_stopping:
            self._say("stopping, as asked on the page: finishing calls in flight ...")
        self._is_stopping = True
        self._session.stop()
        return STOPPING

    async def pending(self) -> list[dict[str, Any]]:
        """See `RunControl.pending`."""
        return await asyncio.to_thread(self._contexts.describe, [] if self._person is None else self._person.pending())

    async def decide(self, body: DecisionBody) -> str:
        """See `RunControl.decide`: the debate resumes at once."""
        if self._person is None:
            raise RequestError(409, "the run is not attended: `moot decide` answers its debates when it has ended")
        self._person.answer(body)
        return "the debate continues"


def limit_words(state: EndpointState) -> str:
    """Text of an endpoint's state.

    >>> limit_words(EndpointState("openai/gpt-4o", bound=32, in_use=30, waiting=12))
    '30 of 32 requests in flight, 12 calls wait'
    """
    down = "" if state.down_s is None else f"; it has been failing for {state.down_s:.0f} s"
    wait = "" if state.asked_wait_s is None else f"; its server asks to wait {state.asked_wait_s:.0f} s"
    return f"{state.in_use:,} of {state.bound:,} requests in flight, {state.waiting:,} calls wait{down}{wait}"


class _Relay(Listener):
    """Listener that forwards a session's events, and keeps those that its page shows.

    Attributes:
        state: of the limiter; empty when nothing is limited.
        has_begun, has_ended: whether the engine has started, and whether the session has ended.
    """

    wants_limits = True

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.wants_events = listener.wants_events
        self.state = LimiterState()
        self.has_begun, self.has_ended = asyncio.Event(), asyncio.Event()

    def indexed(self, done: int, total: int) -> None:
        """See `Listener.indexed`."""
        self._listener.indexed(done, total)

    def began(self, total: int | None, done: int) -> None:
        """See `Listener.began`."""
        self._listener.began(total, done)
        self.has_begun.set()

    def counts(self, counts: Counts) -> None:
        """See `Listener.counts`."""
        self._listener.counts(counts)

    def events(self, events: Sequence[StreamedEvent]) -> None:
        """See `Listener.events`."""
        self._listener.events(events)

    def signals(self, signals: Signals) -> None:
        """See `Listener.signals`."""
        self._listener.signals(signals)

    def limits(self, state: LimiterState) -> None:
        """See `Listener.limits`."""
        self.state = state
        self._listener.limits(state)

    def waiting(self, forms: int) -> None:
        """See `Listener.waiting`."""
        self._listener.waiting(forms)

    def ended(self) -> None:
        """See `Listener.ended`."""
        self._listener.ended()
