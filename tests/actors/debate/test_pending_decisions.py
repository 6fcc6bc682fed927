"""Pending decisions of a person during a run: debates wait for them, resume from the journal, and delay no others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import moderated_debate
import pytest
from moderated_debate import ModeratedDebate, PartlyModerated, ScriptedPerson, SlowPerson
from openai_server import ScriptedServer
from small_runs import FinishedRun, assert_equal_records, run_debates
from structlog.testing import capture_logs

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.pending_decisions import Person
from moot.actors.dispatch.dispatcher import Dispatcher
from moot.protocols.case import Case, LabelledCase

KINDS = ["inline", pytest.param("actors", marks=[pytest.mark.ray, pytest.mark.slow])]
"""On Ray only what takes another way there: who leaves is looked at by the driver, wherever agents are."""
SCRIPT: dict[str, str | tuple[str, str] | None] = {
    "moderation/topics": ("edit topics", "Cost\nPeace"),
    "moderation/round/1": ("set kappa", "much"),
    "moderation/round/1/1": ("set kappa", "0.3"),
    "moderation/round/1/2": ("ask", "And the trees?"),
    "moderation/round/2": "end",
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The runtime under test."""
    if request.param != "inline":
        request.getfixturevalue("local_ray")
    return str(request.param)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Replies of the moderated debate, counted."""
    server = ScriptedServer(moderated_debate.SCRIPTS)
    yield server
    server.close()


def _cases(*names: str) -> list[LabelledCase]:
    return [LabelledCase(Case(id=name, question="Is it so?"), i, None) for i, name in enumerate(names)]


async def _run(
    kind: str, folder: Path, server: ScriptedServer, person: Person | None, *names: str, **changes: Any
) -> FinishedRun:
    roles = {"agent": [RoleBinding(model=server.model, timeout_s=20)]}
    held: dict[str, Any] = {"person": person, "attended": True, "templates": ModeratedDebate.templates}
    return await run_debates(kind, folder, PartlyModerated(), _cases(*names), roles, **held, **changes)


def _kill_the_moderator(dispatcher: Dispatcher) -> None:
    import ray

    directory = dispatcher._runtime.directory  # type: ignore[attr-defined]
    (name,) = directory.moderators
    ray.kill(ray.get_actor(name, namespace=directory.namespace), no_restart=False)


def _paid_once(server: ScriptedServer) -> None:
    assert {step: calls for step, calls in server.calls.items() if calls != 1} == {}


async def test_what_a_person_decides_reaches_the_debate(kind: str, server: ScriptedServer, tmp_path: Path) -> None:
    """They answer at once, so that the debate is opened again while its rows may still be on their way."""
    person = ScriptedPerson(SCRIPT)
    held = await _run(kind, tmp_path / "run", server, person, "a", "plain", "b")
    assert held.parked == []
    assert [path for case_id, path in person.asked if case_id == "a"] == [
        "moderation/topics",
        "moderation/topics/1",
        "moderation/round/1",
        "moderation/round/1/1",
        "moderation/round/1/2",
        "moderation/round/1/3",
        "moderation/round/2",
    ]
    for case_id in ("a", "b"):
        verdict = held.verdict(case_id)
        assert (verdict["how"], verdict["rounds"], verdict["failure"]) == ("ended", 2, "")
        assert verdict["payload"] == {"kappa": 0.3, "topics": "Cost\nPeace", "ended": True}
        turns = held.turns(case_id)
        assert "And the trees?" in turns["round/2/agent/1"]["text"]
        assert "And the trees?" not in turns["round/1/agent/1"]["text"]
        assert "contentiousness 0.3" in server.bodies[f"{case_id}/0/round/2/agent/0"].decode()
        assert (turns["moderation/round/1"]["role"], turns["moderation/round/1"]["model"]) == ("person", "person")
    _paid_once(server)
    if kind != "inline":
        here = await _run("inline", tmp_path / "here", server, ScriptedPerson(SCRIPT), "a", "plain", "b")
        assert_equal_records(held.folder, here.folder)


async def test_the_record_is_the_one_of_a_run_that_was_parked(
    kind: str, server: ScriptedServer, tmp_path: Path
) -> None:
    """Answered one by one, each by a run of its own, or all by a person at hand: the same record, paid for once."""
    live = await _run("inline", tmp_path / "live", server, ScriptedPerson(SCRIPT), "a")
    server.calls.clear()
    parked = await _run(kind, tmp_path / "parked", server, None, "a")
    answered = 0
    while parked.parked:
        parked = await _run("inline", tmp_path / "parked", server, _OneAnswer(SCRIPT), "a")
        answered += 1
    assert answered == 7
    assert_equal_records(live.folder, parked.folder)
    _paid_once(server)


class _OneAnswer(ScriptedPerson):
    """Answers once, then leaves."""

    async def decide(self, consultation: Any) -> Any:
        found = await super().decide(consultation)
        return found if len(self.asked) == 1 else None


async def test_a_pending_decision_delays_no_other_debate(kind: str, server: ScriptedServer, tmp_path: Path) -> None:
    """With one place: the other debates are over before the person answers; and on Ray the moderator has died."""
    person = SlowPerson()

    async def meanwhile(dispatcher: Dispatcher) -> None:
        await person.asked.wait()
        async with asyncio.timeout(60):
            while (await dispatcher._runtime.writers.counts()).finished < 3:  # noqa: ASYNC110 - another process counts
                await asyncio.sleep(0.02)
        if kind != "inline":
            _kill_the_moderator(dispatcher)
        person.may.set()

    names = ("a", "plain-1", "plain-2", "plain-3")
    held = await _run(kind, tmp_path / "run", server, person, *names, max_open=1, moderators=1, meanwhile=meanwhile)
    assert held.verdict("a")["how"] == "t_max"
    assert held.counts.finished == 4
    _paid_once(server)


async def test_a_run_that_is_stopped_asks_no_longer(kind: str, server: ScriptedServer, tmp_path: Path) -> None:
    person = SlowPerson()

    async def meanwhile(dispatcher: Dispatcher) -> None:
        await person.asked.wait()
        dispatcher.stop()

    held = await _run(kind, tmp_path / "run", server, person, "a", meanwhile=meanwhile)
    assert (held.parked, held.rows("verdicts"), person.dismissed) == ([], [], 1)
    held = await _run("inline", tmp_path / "run", server, ScriptedPerson({}), "a")
    assert held.verdict("a")["how"] == "t_max"
    _paid_once(server)


async def test_an_action_that_the_form_does_not_have_is_refused(server: ScriptedServer, tmp_path: Path) -> None:
    """Its debate waits; the others continue."""
    person = ScriptedPerson({"moderation/topics": "shrug"})
    with capture_logs() as logged:
        held = await _run("inline", tmp_path / "run", server, person, "a", "plain")
    assert (held.parked, held.counts.finished) == (["a"], 1)
    (warned,) = [entry for entry in logged if entry["log_level"] == "warning"]
    assert (warned["case"], "unknown action 'shrug'" in warned["why"]) == ("a", True)
    held = await _run("inline", tmp_path / "run", server, ScriptedPerson({}), "a")
    assert held.verdict("a")["how"] == "t_max"
    _paid_once(server)
