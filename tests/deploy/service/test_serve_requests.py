"""Requests to the server: accepted once, bounded, cancelled, remembered, and resumed after a restart."""

from __future__ import annotations

import asyncio
import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from server_client import CASE, INLINE, SLOW, served

from moot.actors.simulated.model import SimulatedModel
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.service.jobs import CompletionRate

ONE_AT_A_TIME: dict[str, Any] = {"debates": SLOW, "max_open": 1, "max_queued": 1}


def case(number: int, **fields: Any) -> dict[str, Any]:
    return {**CASE, "question": f"is number {number} a prime", **fields}


def picture() -> str:
    sink = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(sink, "PNG")
    return base64.b64encode(sink.getvalue()).decode()


async def test_a_debate_has_the_verdict_that_the_engine_gives(tmp_path: Path) -> None:
    run = OpenRun(RunConfig(out=str(tmp_path / "plain"), engine="inline"))
    await run.open()
    held = await run.run_case({**CASE, "id": "seven"})
    await run.close()
    async with served(tmp_path / "served") as client:
        accepted = await client.post("/v1/debates", {**CASE, "id": "seven"})
        told = await client.end("/v1/debates/seven")
    assert accepted.status == 202
    assert accepted.json["id"] == "seven"
    assert accepted.json["status"] in ("queued", "open")
    assert accepted.headers["Location"] == accepted.json["links"]["self"] == "/v1/debates/seven"
    verdict = told["verdict"]
    assert told["status"] == "done"
    assert (verdict["answer"], verdict["how"], verdict["confidence"]) == (held.answer, held.how, held.confidence)
    assert (verdict["calls"], verdict["payload"]) == (held.calls, dict(held.payload))
    assert not verdict["reused"]


async def test_judgments_and_checks(tmp_path: Path) -> None:
    async with served(tmp_path, judgments={**INLINE, "passes": 2}, checks=INLINE) as client:
        reply = {"reply": "Seven is a prime: only 1 and 7 divide it.", "prompt": "is seven a prime"}
        judged = (await client.post("/v1/judgments", reply)).json
        claim = {"claim": "Seven is a prime.", "documents": ["Only 1 and 7 divide seven."], "images": [picture()]}
        checked = (await client.post("/v1/checks", {**claim, "id": "mine"})).json
        quality = (await client.end(judged["links"]["self"]))["verdict"]["payload"]
        label = (await client.end(checked["links"]["self"]))["verdict"]
        stats = (await client.get("/v1/stats")).json
    assert quality["rubric"] == "reasoning"
    assert quality["judgments"] == 2
    assert label["answer"] in ("supported", "hallucinated", None)
    assert label["payload"]["source"] in ("judges", None)
    assert checked["id"] == "mine"
    assert stats["judgments"]["done"] == stats["checks"]["done"] == 1


async def test_what_is_not_offered_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        answers = [
            await client.post("/v1/judgments", {"reply": "yes"}),
            await client.post("/v1/checks", {"claim": "yes"}),
            await client.get("/v1/checks/x"),
            await client.get("/v1/debates/x"),
            await client.get("/v1/debates/x/events"),
            await client.ask("DELETE", "/v1/debates/x"),
        ]
    assert [(each.status, each.code) for each in answers] == [(404, "not_offered")] * 3 + [(404, "not_found")] * 3


async def test_the_same_id_is_the_same_debate_and_no_other(tmp_path: Path) -> None:
    for _ in range(2):  # the second server has it on record
        async with served(tmp_path) as client:
            several = await asyncio.gather(*(client.post("/v1/debates", case(1, id="one")) for _ in range(5)))
            assert {each.status for each in several} <= {200, 202}
            await client.end("/v1/debates/one")
            again = await client.post("/v1/debates", case(1, id="one"))
            other = await client.post("/v1/debates", case(2, id="one"))
            unnamed = [(await client.post("/v1/debates", case(3))).json["id"] for _ in range(2)]
            assert again.json["status"] == "done"
            assert (other.status, other.code) == (409, "other_content")
            assert len(set(unnamed)) == 1
            await client.end(f"/v1/debates/{unnamed[0]}")
            counts = await client.services.of("debates").run.counts()
    assert counts.finished == 2


async def test_a_full_queue_refuses_and_says_when_to_come_again(tmp_path: Path) -> None:
    async with served(tmp_path, **ONE_AT_A_TIME) as client:
        for number in range(2):
            assert (await client.post("/v1/debates", case(number, id=f"q{number}"))).status == 202
        await client.until("/v1/debates/q0", "open")
        assert (await client.get("/v1/debates/q1")).json["status"] == "queued"
        full = await client.post("/v1/debates", case(2, id="q2"))
        same = await client.post("/v1/debates", case(1, id="q1"))
        stats = (await client.get("/v1/stats")).json["debates"]
    assert (full.status, full.code) == (429, "queue_full")
    assert int(full.headers["Retry-After"]) >= 1
    assert same.status == 202
    none = dict.fromkeys(("aside", "lost", "done", "failed", "cancelled"), 0)
    assert stats == {**none, "open": 1, "queued": 1, "refused": 1}


async def test_cancelling_makes_room_and_is_remembered(tmp_path: Path) -> None:
    async with served(tmp_path, **ONE_AT_A_TIME) as client:
        for number in range(2):
            await client.post("/v1/debates", case(number, id=f"q{number}"))
        await client.until("/v1/debates/q0", "open")
        gone = await client.ask("DELETE", "/v1/debates/q0")
        assert (gone.status, gone.json["status"]) == (200, "cancelled")
        assert (await client.ask("DELETE", "/v1/debates/q0")).status == 409
        await client.until("/v1/debates/q1", "open")
        assert (await client.post("/v1/debates", case(2, id="q2"))).status == 202
    async with served(tmp_path, **ONE_AT_A_TIME) as client:
        assert (await client.get("/v1/debates/q0")).json["status"] == "cancelled"
        assert (await client.get("/v1/debates/q2")).json["status"] in ("queued", "open")
        assert (await client.ask("DELETE", "/v1/debates/q2")).status == 200


async def test_one_request_may_wait_for_its_verdict(tmp_path: Path) -> None:
    async with served(tmp_path, debates={**INLINE, "model": "simulated?latency_ms=20"}) as client:
        soon = await client.post("/v1/debates?wait_s=0.001", {**CASE, "id": "one"})
        told = await client.post("/v1/debates?wait_s=60", {**CASE, "id": "one"})
        assert (await client.get("/v1/debates/one?wait_s=61")).status == 422
    assert (soon.status, soon.json["verdict"]) == (202, None)
    assert (told.status, told.json["status"]) == (200, "done")
    assert told.headers["Server-Timing"].startswith("engine;dur=")


async def test_accepted_debates_resume_by_themselves_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    bodies = [case(number, id=f"q{number}", images=[picture()]) for number in range(3)]
    with monkeypatch.context() as patched:
        patched.setattr(SimulatedModel, "complete", never)
        async with served(tmp_path) as client:
            for body in bodies:
                assert (await client.post("/v1/debates", body)).status == 202
            await client.until("/v1/debates/q0", "open")
    async with served(tmp_path) as client:
        stats = (await client.get("/v1/stats")).json["debates"]
        assert stats["open"] + stats["queued"] + stats["done"] == 3
        ends = [await client.end(f"/v1/debates/q{number}") for number in range(3)]
        again = await client.post("/v1/debates", bodies[0])
        assert again.status == 200
    assert [end["status"] for end in ends] == ["done"] * 3
    assert again.json["status"] == "done"
    async with served(tmp_path) as client:
        assert (await client.get("/v1/debates/q2")).json["verdict"]["reused"]
        assert (await client.get("/v1/stats")).json["debates"]["open"] == 0


async def test_draining_takes_nothing_new_and_lets_debates_end(tmp_path: Path) -> None:
    async with served(tmp_path, debates={**INLINE, "model": "simulated?latency_ms=100"}) as client:
        await client.post("/v1/debates", {**CASE, "id": "seven"})
        draining = asyncio.create_task(client.services.drain(30.0))
        await asyncio.sleep(0)
        refused = await client.post("/v1/debates", case(1))
        assert (refused.status, refused.code) == (503, "stopping")
        assert int(refused.headers["Retry-After"]) >= 1
        assert (await client.get("/readyz")).status == 503
        assert (await client.get("/healthz")).status == 200
        assert (await client.end("/v1/debates/seven"))["status"] == "done"
        await draining
        assert await client.services.close() == 0
        assert (await client.get("/v1/debates/seven")).json["status"] == "done"
        assert (await client.get("/v1/debates/unknown")).status == 503


def test_a_quiet_time_is_no_part_of_the_pace_at_which_debates_end() -> None:
    now = 0.0
    rate = CompletionRate(lambda: now)
    for count, each_s in ((256, 1.0), (0, 0.0), (100, 1.0), (1000, 0.01)):
        for _ in range(count):
            now += each_s
            rate.record()
        if not count:
            now += 36_000.0
            assert rate.seconds_until(1) == 5.0  # nothing is known of now
        elif each_s == 1.0:
            assert rate.seconds_until(10) == pytest.approx(10.0, rel=0.1)
    assert rate.seconds_until(1) < 0.02 + 1e-3


async def test_a_failed_debate_is_reported_as_failed(tmp_path: Path) -> None:
    async with served(tmp_path, debates={**INLINE, "model": "simulated?latency_ms=500", "debate_timeout_s": 0.05}) as c:
        await c.post("/v1/debates", {**CASE, "id": "late"})
        told = await c.end("/v1/debates/late")
    assert told["status"] == "failed"
    assert told["verdict"]["failure"]
    assert told["verdict"]["answer"] is None
