"""What ends the wait for an actor that may have died or lost an ask, and when its deaths end the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from journal_writer import batch, debate_result, labelled, new_run, open_writer, reply
from small_runs import make_spec, same_model_roles
from virtual_time import virtual_time

from moot.actors.agent.roles import Roles
from moot.actors.debate.context_factory import services
from moot.actors.debate.engine import ModeratorLost
from moot.actors.debate.moderator import Assignment, AssignmentOutcome
from moot.actors.record.recovery import History
from moot.actors.record.schema import CaseKey
from moot.actors.remote.agent_pool import RemoteAgentPool
from moot.actors.remote.envelopes import ReplyEnvelope, decode_batch, encode
from moot.actors.remote.peers import MAX_DEATHS, Incarnation, Peer, PeerLost
from moot.actors.remote.record_client import RemoteRecordClient
from moot.actors.remote.reliable_channel import OutcomeBatch
from moot.actors.remote.runtime import RayModeratorHandle
from moot.actors.remote.writer_pool import RayWriterPool
from moot.protocols.case import Case
from moot.protocols.errors import ActorGone
from moot.protocols.messages import Ask, AskResult

ASSIGNED = Assignment(Case(id="c", question="?"))


class CrashingPeer(Peer):
    """Dies of its first `deadly` calls, or is out of reach for them, and is back at once."""

    def __init__(self, deadly: int, *, dies: bool = True, result: Callable[..., Any] = lambda *_: b"") -> None:
        super().__init__("mortal", "here")
        self.life_number, self._left, self._dies, self._result = 0, deadly, dies, result

    async def call(self, method: str, *args: Any) -> Any:
        if method == "where":
            return msgspec.msgpack.encode(Incarnation("node", f"worker {self.life_number}", 1))
        if method == "watch":
            await asyncio.Event().wait()
        if method == "ping":
            return None
        if self._left:
            self._left -= 1
            self.life_number += self._dies
            raise PeerLost("killed: out of memory", dead=False)
        return self._result(*args)


class FakeProgressRecord:
    """Says how far the debates have come: further each time, or not."""

    def __init__(self, step: tuple[int, int]) -> None:
        self._step, self._asked = step, 0

    def raise_if_broken(self) -> None:
        pass

    async def so_far(self, keys: Collection[CaseKey]) -> tuple[int, int]:
        assert set(keys) == {("c", 0)}
        self._asked += 1
        return self._step[0] * self._asked, self._step[1] * self._asked


async def test_a_call_that_kills_each_incarnation_is_not_made_for_ever() -> None:
    with pytest.raises(ActorGone, match=r"5 times .*out of memory"):
        await CrashingPeer(MAX_DEATHS).call_until_done("commit")
    assert await CrashingPeer(MAX_DEATHS - 1).call_until_done("commit") == b""
    assert await CrashingPeer(3 * MAX_DEATHS, dies=False).call_until_done("commit") == b""


async def _losses(moderator: RayModeratorHandle) -> int:
    """How often a moderator is lost before it reports outcomes."""
    losses = 0
    while True:
        try:
            await moderator.exchange([ASSIGNED], wait=True)
        except ModeratorLost:
            losses += 1
        else:
            return losses


def _ended(*_: Any) -> bytes:
    return msgspec.msgpack.encode(OutcomeBatch("life", 0, [AssignmentOutcome("c", 0, "finished")]))


@virtual_time
async def test_debates_that_kill_each_incarnation_of_their_moderator_end_the_run() -> None:
    moderator = RayModeratorHandle(
        CrashingPeer(MAX_DEATHS, result=_ended), cast(RayWriterPool, FakeProgressRecord((0, 0)))
    )
    with pytest.raises(ActorGone, match="run the same command again to resume"):
        await _losses(moderator)


@pytest.mark.parametrize(
    ("dies", "step"),
    [(True, (0, 1)), (True, (1, 0)), (False, (0, 0))],
    ids=["a reply is on record", "a verdict is on record", "only out of reach"],
)
@virtual_time
async def test_a_moderator_whose_debates_come_on_may_die_at_will(dies: bool, step: tuple[int, int]) -> None:
    moderator = RayModeratorHandle(
        CrashingPeer(3 * MAX_DEATHS, dies=dies, result=_ended), cast(RayWriterPool, FakeProgressRecord(step))
    )
    assert await _losses(moderator) == 3 * MAX_DEATHS


@virtual_time
async def test_an_outcome_counts_as_coming_on() -> None:
    peer = CrashingPeer(MAX_DEATHS - 1, result=_ended)
    moderator = RayModeratorHandle(peer, cast(RayWriterPool, FakeProgressRecord((0, 0))))
    await _losses(moderator)
    peer._left = MAX_DEATHS - 1
    assert await _losses(moderator) == MAX_DEATHS - 1


class NoRecord:
    """Holds nothing of any debate; keeps what a moderator writes itself."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    async def histories(self, keys: Collection[CaseKey]) -> dict[CaseKey, History]:
        return {key: History() for key in keys}

    def put_event(self, *_: Any) -> None: ...

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        self.rows.append(columns)


def _agent_pool(peer: Peer, tmp_path: Path, record: NoRecord | None = None) -> RemoteAgentPool:
    roles = Roles(make_spec(tmp_path, same_model_roles("simulated")).roles)
    record_client = cast(RemoteRecordClient, record or NoRecord())
    return RemoteAgentPool(roles, {service: [peer] for service in services(roles)}, record_client, "moderator-0")


def _ask(seconds: float) -> Ask:
    reply = "moot.protocols.replies:FreeText"
    return Ask(
        case_id="c", attempt=0, path="a", role="agent/0", template="t", slots={}, reply=reply, seconds_left=seconds
    )


def _answers(blob: bytes) -> bytes:
    asked = decode_batch(blob).messages
    return encode([ReplyEnvelope(each.number, AskResult(path="a", reply_id="r", model="m")) for each in asked])


@pytest.mark.parametrize("deadly", [MAX_DEATHS - 1, MAX_DEATHS])
@virtual_time
async def test_an_ask_that_kills_each_incarnation_of_its_agent_is_given_up(deadly: int, tmp_path: Path) -> None:
    agent_pool = _agent_pool(CrashingPeer(deadly, result=_answers), tmp_path)
    async with asyncio.timeout(10):
        if deadly < MAX_DEATHS:
            assert (await agent_pool.answer(_ask(5.0))).reply_id == "r"
        else:
            with pytest.raises(ActorGone, match="died 5 times"):
                await agent_pool.answer(_ask(5.0))


class ForgetfulAgent(CrashingPeer):
    """Agent whose `has_ask` is set by the test, and which answers when released."""

    def __init__(self, holds: list[bool]) -> None:
        super().__init__(0)
        self._holds, self._may_answer = holds, asyncio.Event()

    async def call(self, method: str, *args: Any) -> Any:
        if method == "has_ask":
            held = self._holds.pop(0)
            if not self._holds:
                self._may_answer.set()
            return held
        if method == "exchange":
            await self._may_answer.wait()
            return _answers(*args)
        return await super().call(method, *args)


@pytest.mark.parametrize(
    ("holds", "outcome"),
    [([True, False, True, False], "ok"), ([False, True], "ok"), ([False, False, True], "failed")],
    ids=["in doubt once at a time", "not yet there", "lost"],
)
@virtual_time
async def test_an_ask_is_given_up_only_when_it_is_missed_twice_running(
    holds: list[bool], outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.actors.remote.agent_pool._GRACE_S", 0.05)
    record = NoRecord()
    answered = await asyncio.wait_for(_agent_pool(ForgetfulAgent(holds), tmp_path, record).answer(_ask(0.01)), 5.0)
    assert answered.outcome == outcome
    assert [row["failure"] for row in record.rows] == ([] if outcome == "ok" else ["timeout"])
    assert len(holds) == (0 if outcome == "ok" else 1)


@virtual_time
async def test_what_an_agent_raises_ends_the_ask_at_once(tmp_path: Path) -> None:
    def mistaken(blob: bytes) -> bytes:
        return encode([ReplyEnvelope(each.number, None, "KeyError: 'x'") for each in decode_batch(blob).messages])

    agent_pool = _agent_pool(CrashingPeer(0, result=mistaken), tmp_path)
    with pytest.raises(RuntimeError, match="mortal raised KeyError: 'x'"):
        await asyncio.wait_for(agent_pool.answer(_ask(60.0)), 5.0)
    await agent_pool.close()


async def test_the_record_says_how_far_debates_have_come(tmp_path: Path) -> None:
    keys = [("c000", 0), ("c001", 0), ("c002", 0)]
    async with open_writer(new_run(tmp_path)) as writer:
        await writer.register([labelled(0), labelled(1), labelled(2)])
        writer.add_replies(batch([reply("c000", "a", "1"), reply("c000", "b", "2"), reply("c001", "a", "3")]))
        assert writer.so_far(keys) == (0, 3)
        assert await writer.commit([debate_result("c000", {"a": "1", "b": "2"})]) == [True]
        assert writer.so_far(keys) == (1, 1)
