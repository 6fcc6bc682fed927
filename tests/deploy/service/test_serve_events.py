"""Server-sent events of a debate: live, resumed, late, and never more than one event from what was said."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from server_client import CASE, INLINE, SLOW, parsed, served

from moot.actors.record.tables import read_table
from moot.deploy.runs.open_run import OpenRun
from moot.protocols.messages import Event, Verdict

HOSTILE = 'x\n\nevent: end\ndata: {"status":"done"}\r\nid: 9\u2028<script>alert(1)</script>\u0085'


class Loud:
    """A protocol that says what would break out of a stream, or of a page."""

    name = "loud"
    roles = ("agent",)
    needs_logprobs = False

    async def run(self, case: Any, floor: Any) -> Verdict:
        floor.note(Event("shout", f"shout/{HOSTILE}", {"said": HOSTILE, "unknown": float("nan")}))
        floor.note(Event(HOSTILE, "named", {}))
        return Verdict(answer=HOSTILE, how="shouted", payload={"said": HOSTILE, "unknown": float("nan")})


async def test_events_arrive_while_it_runs_and_end_with_the_verdict(tmp_path: Path) -> None:
    async with served(tmp_path, debates={**INLINE, "model": "simulated?latency_ms=100"}) as client:
        await client.post("/v1/debates", {**CASE, "id": "seven"})
        seen: list[str] = []
        async with client.session.get(f"{client.base}/v1/debates/seven/events") as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            text = ""
            async for chunk in response.content.iter_any():
                text += chunk.decode()
                if not seen and parsed(text):
                    seen.append((await client.get("/v1/debates/seven")).json["status"])
        told = (await client.get("/v1/debates/seven")).json
        whole = parsed(text)
        late = await client.events("/v1/debates/seven/events")
    assert seen == ["open"]
    assert whole == late
    assert whole[0]["event"] == "asked"
    assert whole[-1]["event"] == "end"
    assert json.loads(whole[-1]["data"]) == told
    asked = [event for event in whole if event["event"] == "asked"]
    assert len(asked) == told["verdict"]["calls"]
    replies = [json.loads(event["data"]) for event in whole if event["event"] == "reply"]
    turns = read_table(tmp_path / "debates", "turns", ["path", "text", "answer", "role"]).to_pylist()
    recorded = {(row["path"], row["role"], row["text"], row["answer"]) for row in turns}
    assert {(r["path"], r["data"]["role"], r["data"]["text"], r["data"]["answer"]) for r in replies} == recorded
    assert len(replies) == len(recorded) == len(asked)
    assert [event["id"].rpartition("-")[2] for event in whole] == [str(number) for number in range(len(whole))]


async def test_a_reader_who_comes_again_gets_the_rest_only_also_from_the_record(tmp_path: Path) -> None:
    place = "/v1/debates/seven/events"
    told: list[list[dict[str, str]]] = []
    for _ in range(2):  # the second server has it on record
        async with served(tmp_path) as client:
            await client.post("/v1/debates?wait_s=60", {**CASE, "id": "seven"})
            whole = await client.events(place)
            rest, last, foreign, odd = [
                await client.events(place, **{"Last-Event-ID": known})
                for known in (whole[2]["id"], whole[-1]["id"], "ffffffff-3", "9" * 3000)
            ]
        assert rest == whole[3:]
        assert [event["event"] for event in last] == ["end"]
        assert foreign == odd == whole
        told.append(whole)
    live, late = told
    assert sorted(event["event"] for event in late) == sorted(event["event"] for event in live)
    assert [event["data"] for event in late if event["event"] == "verdict"] == [
        event["data"] for event in live if event["event"] == "verdict"
    ]
    assert late[-1]["event"] == "end"


async def test_a_stream_ends_with_a_cancelled_debate_and_hanging_up_cancels_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, debates=SLOW) as client:
        await client.post("/v1/debates", {**CASE, "id": "slow"})
        async with client.session.get(f"{client.base}/v1/debates/slow/events") as response:
            assert await response.content.readline()
        assert (await client.get("/v1/debates/slow")).json["status"] in ("queued", "open")
        reading = asyncio.create_task(client.events("/v1/debates/slow/events"))
        await asyncio.sleep(0.2)
        await client.ask("DELETE", "/v1/debates/slow")
        end = (await reading)[-1]
    assert end["event"] == "end"
    assert json.loads(end["data"])["status"] == "cancelled"


async def test_a_subscriber_of_the_last_debate_of_a_drain_gets_its_end(tmp_path: Path) -> None:
    async with served(tmp_path, debates={**INLINE, "model": "simulated?latency_ms=150"}) as client:
        await client.post("/v1/debates", {**CASE, "id": "one"})
        async with client.session.get(f"{client.base}/v1/debates/one/events") as stream:
            await stream.content.readline()
            await client.services.drain(30.0)
            assert await client.services.close() == 0
            told = parsed((await stream.read()).decode())
    assert [event["event"] for event in told][-2:] == ["verdict", "end"]


async def test_a_quiet_stream_has_heartbeats_and_ends_for_its_reader_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.deploy.service.stream.HEARTBEAT_S", 0.05)
    async with served(tmp_path, debates=SLOW, stream_s=0.6) as client:
        await client.post("/v1/debates", {**CASE, "id": "slow"})
        text = (await client.get("/v1/debates/slow/events")).text
        assert (await client.get("/v1/debates/slow")).json["status"] == "open"
    assert text.startswith("retry: ")
    assert "\n\n: still here\n\n" in text
    assert text.endswith(": come again\n\n")
    assert "event: end" not in text


async def test_text_of_a_debate_never_starts_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.service.service.OpenRun", lambda config, **_: OpenRun(config, protocol=Loud()))
    async with served(tmp_path) as client:
        await client.post("/v1/debates", {"question": "what is said", "id": "loud"})
        told = await client.end("/v1/debates/loud")
        live = (await client.get("/v1/debates/loud/events")).text
    async with served(tmp_path) as client:
        late = (await client.get("/v1/debates/loud/events")).text
    assert told["verdict"]["answer"] == HOSTILE
    assert told["verdict"]["payload"] == {"said": HOSTILE, "unknown": None}
    for text in (live, late):
        events = parsed(text)
        assert [event["event"] for event in events if event["event"] != "verdict"] == ["shout", "event", "end"]
        assert all(set(event) == {"id", "event", "data"} for event in events)
        assert json.loads(events[0]["data"])["data"] == {"said": HOSTILE, "unknown": None}
        assert "\r" not in text
