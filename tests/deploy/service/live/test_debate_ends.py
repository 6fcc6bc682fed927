"""Every debate has one end, whichever way it ends: nothing is kept of it as open, here or on a page."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from planted_records import PlantedSession
from server_client import until
from waiting_debates import ENDINGS, Follower, case_of, engine_of, kept_of_open_debates, waiting_debates

from moot.actors.dispatch.case_router import DebateCancelled
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.progress import StreamedEvent
from moot.actors.record.schema import CANCELLED, RESUMED
from moot.actors.record.tables import read_table
from moot.deploy.results.case_table import case_table, outcome
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.record import RunRecord
from moot.deploy.results.transcript import build_transcript
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.recorded_run import open_run
from moot.deploy.service.live.debate_reader import DebateReader

Waiting = asyncio.Task[DebateResult]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.record.journal._COMMIT_S", 0.005)
    monkeypatch.setattr("moot.actors.debate.moderator._LINGER_S", 0.005)
    monkeypatch.setattr("moot.actors.dispatch.queue_dispatcher._POLL_S", 0.01)
    monkeypatch.setattr("moot.actors.dispatch.case_router.DRAIN_S", 0.1)


async def begun(run: OpenRun, names: list[str], how: str = "waits") -> list[Waiting]:
    """Who waits for each of these debates, which have all begun."""
    waiting = [asyncio.create_task(run.run_case(case_of(name, how))) for name in names]
    await until(lambda: all(run.has_started(name) for name in names))
    return waiting


def _have_begun(run: OpenRun, names: list[str], count: int) -> bool:
    return sum(map(run.has_started, names)) == count


async def nothing_is_open(run: OpenRun, page: Follower) -> None:
    """Nothing is kept of any debate, and the page of the run, which is live, has none."""
    await until(lambda: not kept_of_open_debates(run))
    assert await page.open_cases(run) == set()
    await asyncio.sleep(0.06)  # replies that come late
    assert await page.open_cases(run) == set()
    assert kept_of_open_debates(run) == {}
    assert (page.figures.figures().open, page.figures.debates.shown(0.0), page.figures.debates._decided) == (0, [], {})


async def test_a_hundred_withdrawn_debates_are_open_nowhere(tmp_path: Path) -> None:
    names = [f"q{number}" for number in range(100)]
    async with waiting_debates(tmp_path / "run", max_open=40) as (run, protocol, page):
        for half in (names[:50], names[50:]):  # the second half leaves no more than the first
            waiting = [asyncio.create_task(run.run_case(case_of(name))) for name in half]
            await until(partial(_have_begun, run, half, 40))  # and the others have no place
            assert len(await page.open_cases(run)) == 40
            assert all(await asyncio.gather(*map(run.cancel, half)))
            assert {type(end) for end in await asyncio.gather(*waiting, return_exceptions=True)} == {DebateCancelled}
            await nothing_is_open(run, page)
        protocol.go_on.set()
        assert (await run.run_case(case_of("q7"))).answer == "Yes"  # submitted again, it is open again, and ends
        await nothing_is_open(run, page)
    summary = summarise(tmp_path / "run")
    assert (summary.cases, summary.finished, summary.open, summary.withdrawn) == (100, 1, 99, 99)
    outcomes = case_table(tmp_path / "run").rows["outcome"].to_pylist()
    assert Counter(outcomes) == {"withdrawn": 99, "unscored": 1}
    assert build_transcript(tmp_path / "run", "q8").state == outcome(RunRecord(tmp_path / "run"), "q8") == "withdrawn"
    assert open_run(tmp_path / "run").under_way == 0


FAILURES = {"quorum": "quorum_failed", "twice": "path_reused", "late": "deadline", "invalid": "invalid_case"}
WITHOUT_VERDICT = ("withdrawn", "stopped", "closed")


@pytest.mark.parametrize("how", [*ENDINGS, *WITHOUT_VERDICT])
async def test_whichever_way_a_debate_ends_nothing_is_kept_of_it(how: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"debate_timeout_s": 0.3} if how == "late" else {}
    async with waiting_debates(tmp_path / "run", **options) as (run, _, page):
        case = run.prepare_case(case_of("q", "waits" if how in WITHOUT_VERDICT else how))
        case = msgspec.structs.replace(case, invalid="no question" if how == "invalid" else "")
        waiting = asyncio.create_task(run.run_labelled_case(case))
        await until(lambda: waiting.done() or run.has_started("q"))
        if how == "withdrawn":
            await run.cancel("q")
        elif how == "stopped":
            assert run._dispatcher is not None
            run._dispatcher._stop("endpoint_down: m")
        elif how == "closed":
            await run.close()
        (end,) = await asyncio.gather(waiting, return_exceptions=True)
        if how != "closed":
            await nothing_is_open(run, page)
    if how in WITHOUT_VERDICT:
        assert isinstance(end, DebateCancelled)
    else:
        assert isinstance(end, DebateResult)
        assert end.failure == FAILURES.get(how, "" if how == "verdict" else "bug")
    events = read_table(tmp_path / "run", "events", ["data"]).to_pylist()
    noted = [row["data"] for row in events if row["kind"] == CANCELLED]
    assert noted == ([f'{{"why":"{how}"}}'] if how in ("withdrawn", "stopped") else [])


@pytest.mark.parametrize("seed", range(3))
async def test_a_page_has_the_debates_that_are_open_whatever_is_withdrawn_and_submitted_again(
    seed: int, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    async with waiting_debates(tmp_path / "run", max_open=50) as (run, protocol, page):
        waiting: dict[str, Waiting] = {}
        for _ in range(40):
            name = f"q{draw.randrange(6)}"
            if name in waiting and draw.random() < 0.6:
                assert await run.cancel(name)
                assert isinstance((await asyncio.gather(waiting.pop(name), return_exceptions=True))[0], DebateCancelled)
            elif name not in waiting:
                waiting[name] = asyncio.create_task(run.run_case(case_of(name)))
                moderator: Any = engine_of(run).moderators[0]
                await until(partial(moderator._tasks.__contains__, (name, 0)))
            if draw.random() < 0.5:
                await asyncio.sleep(draw.choice((0.0, 0.02)))
            else:
                await until(lambda: all(map(run.has_started, waiting)))
                assert await page.open_cases(run) == set(waiting)
        protocol.go_on.set()
        assert all(end.answer == "Yes" for end in await asyncio.gather(*waiting.values()))
        await nothing_is_open(run, page)
    turns = read_table(tmp_path / "run", "turns", ["path"]).to_pylist()
    assert len({(row["case_id"], row["path"]) for row in turns}) == len(turns), "nothing is paid for twice"


async def test_a_debate_of_an_earlier_session_is_open_when_it_is_resumed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    async with waiting_debates(out) as (run, _, page):
        waiting = await begun(run, ["resumed", "left", "withdrawn"])
        await run.cancel("withdrawn")
        assert await page.open_cases(run) == {"resumed", "left"}
    await asyncio.gather(*waiting, return_exceptions=True)
    async with waiting_debates(out) as (run, protocol, page):
        assert await page.open_cases(run) == set()
        waiting = await begun(run, ["new"])
        again = [asyncio.create_task(run.run_case(case_of(name))) for name in ("resumed", "withdrawn")]
        await until(lambda: run.pending == 3)
        protocol.go_on.set()
        await asyncio.gather(*waiting, *again)
        await nothing_is_open(run, page)
    kinds = {(row["case_id"], row["kind"]) for row in read_table(out, "events", []).to_pylist()}
    assert {kind for case_id, kind in kinds if case_id == "withdrawn"} >= {CANCELLED, RESUMED}
    assert summarise(out).withdrawn == 0


def test_of_a_run_that_is_not_under_way_only_what_waits_for_a_person_is_open(session: PlantedSession) -> None:
    """As in records of earlier versions, whose withdrawn debates have no end."""
    for case_id in ("withdrawn", "waits", "decided", "later"):
        session.case(case_id)
        session.reply(case_id, "opening/agent/0", 10)
    for case_id in ("waits", "decided"):
        session.event(case_id, "parked", "review")
    session.reply("decided", "review", 0, role="person")
    later = session.new()
    later.reply("later", "round/1/agent/0", 10)
    assert open_in(session.plant(later)) == {"later", "waits"}


def open_in(path: Path) -> set[str]:
    """Debates in progress in the last session of a record, and after it."""
    with closing(Follower(path)) as page:
        for added in page._record.read():
            page.figures.add(added)
        found = {case_id for case_id, _ in page.figures.debates._open}
        page.figures.debates.end_session()
        assert page.figures.figures().open == page.figures.debates.waiting == 1
        return found


def test_the_stream_of_a_debate_ends_with_its_withdrawal_unless_it_is_resumed() -> None:
    reader, has_ended = DebateReader("q"), []
    for at, kind in enumerate(("asked", CANCELLED, "reply", RESUMED, "asked", "verdict")):
        reader.events.append(StreamedEvent("q", 0, kind, "", {}, float(at)))
        assert reader.next_written()
        has_ended.append(reader.has_ended)
    assert has_ended == [False, True, True, False, False, True]
