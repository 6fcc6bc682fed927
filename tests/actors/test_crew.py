"""How long a moderator waits for an agent that may have lost an ask."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from houses import make_spec, same_for_all
from leaping import leaping

from moot.actors.household import services
from moot.actors.remote.crew import RemoteCrew
from moot.actors.remote.envelopes import ReplyEnvelope, decode_parcel, encode
from moot.actors.remote.peers import Peer
from moot.actors.remote.scribe import RemoteScribe
from moot.actors.roles import Roles
from moot.protocols.messages import Answered, Ask


class ForgetfulPeer:
    """An agent that says whether it has an ask as it is told to, and answers when it is let to."""

    name = "agent"

    def __init__(self, holds: list[bool]) -> None:
        self._holds = holds
        self.may_answer = asyncio.Event()

    async def watch(self, lost: Any) -> None:
        await asyncio.Event().wait()

    async def call(self, method: str, *args: Any) -> Any:
        if method == "holds":
            held = self._holds.pop(0)
            if not self._holds:
                self.may_answer.set()
            return held
        asked = decode_parcel(args[0]).messages
        await self.may_answer.wait()
        return encode([ReplyEnvelope(each.number, Answered(path="a", reply_id="r", model="m")) for each in asked])


class Rows:
    """Keeps what the moderator writes itself."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        self.rows.append(columns)


@pytest.mark.parametrize(
    ("holds", "outcome"),
    [([True, False, True, False], "ok"), ([False, True], "ok"), ([False, False, True], "failed")],
    ids=["in doubt once at a time", "not yet there", "lost"],
)
@leaping
async def test_an_ask_is_given_up_only_when_it_is_missed_twice_running(
    holds: list[bool], outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.actors.remote.crew._GRACE_S", 0.05)
    roles = Roles(make_spec(tmp_path, same_for_all("simulated")).roles)
    peer, rows = ForgetfulPeer(holds), Rows()
    agents = {service: [cast(Peer, peer)] for service in services(roles)}
    crew = RemoteCrew(roles, agents, cast(RemoteScribe, rows), "moderator-0")
    reply = "moot.protocols.replies:FreeText"
    ask = Ask(case_id="c", attempt=0, path="a", role="agent/0", template="t", slots={}, reply=reply, seconds_left=0.01)
    answered = await asyncio.wait_for(crew.answer(ask), 5.0)
    assert answered.outcome == outcome
    assert [row["failure"] for row in rows.rows] == ([] if outcome == "ok" else ["timeout"])
    assert len(holds) == (0 if outcome == "ok" else 1)


class MistakenPeer(ForgetfulPeer):
    """An agent that answers no ask for a mistake of ours."""

    async def call(self, method: str, *args: Any) -> Any:
        return encode([ReplyEnvelope(each.number, None, "KeyError: 'x'") for each in decode_parcel(args[0]).messages])


@leaping
async def test_what_an_agent_raises_ends_the_ask_at_once(tmp_path: Path) -> None:
    roles = Roles(make_spec(tmp_path, same_for_all("simulated")).roles)
    agents = {service: [cast(Peer, MistakenPeer([]))] for service in services(roles)}
    crew = RemoteCrew(roles, agents, cast(RemoteScribe, Rows()), "moderator-0")
    ask = Ask(case_id="c", attempt=0, path="a", role="agent/0", template="t", slots={}, reply="r", seconds_left=60.0)
    with pytest.raises(RuntimeError, match="agent raised KeyError: 'x'"):
        await asyncio.wait_for(crew.answer(ask), 5.0)
    await crew.close()
