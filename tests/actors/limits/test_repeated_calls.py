"""Calls to the record and the limiter that come again because their answer was lost: nothing counts twice or hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from journal_writer import batch, debate_result, debate_rows, labelled, new_run, open_writer, submit_case

from moot.actors.limits.budget_account import BudgetAccount
from moot.actors.limits.envelopes import BudgetTotals, EndpointReport, Grant, UsageReport
from moot.actors.limits.ledger import DurableLimiter, Ledger, ReportDeduplicator
from moot.actors.record.folder import RunFolder
from moot.actors.record.journal import Journal
from moot.actors.record.reply_leases import ReplyLeases
from moot.actors.record.schema import ABANDONED
from moot.actors.record.tables import read_raw_rows, read_table
from moot.protocols.errors import RecordError
from moot.protocols.messages import Event


class SlowLimiter:
    """A limiter that takes its time, and grants a number of its own to each report that it takes."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, int]] = []

    async def exchange(self, report: UsageReport) -> Grant:
        self.taken.append((report.holder, report.number))
        await asyncio.sleep(0.01)
        return Grant([], {"usd": float(len(self.taken))})


async def test_a_report_that_comes_again_is_taken_once_and_granted_the_same() -> None:
    limiter = SlowLimiter()
    once = ReportDeduplicator(limiter.exchange)
    first, again = await asyncio.gather(*(once.exchange(UsageReport("a", number=1)) for _ in range(2)))
    late = await once.exchange(UsageReport("a", number=1))
    assert first == again == late == Grant([], {"usd": 1.0})
    assert await once.exchange(UsageReport("a", number=2)) == Grant([], {"usd": 2.0})
    assert await once.exchange(UsageReport("b", number=1)) == Grant([], {"usd": 3.0})
    assert await once.exchange(UsageReport("a", number=1)) == Grant()
    assert limiter.taken == [("a", 1), ("a", 2), ("b", 1)]


async def test_a_caller_that_goes_away_takes_the_grant_of_nobody_else() -> None:
    once = ReportDeduplicator(SlowLimiter().exchange)
    gone = asyncio.create_task(once.exchange(UsageReport("a", number=1)))
    await asyncio.sleep(0)
    again = asyncio.create_task(once.exchange(UsageReport("a", number=1)))
    await asyncio.sleep(0)
    gone.cancel()
    assert await again == Grant([], {"usd": 1.0})


async def test_a_lease_has_one_lessee_and_is_passed_on_also_when_its_answer_was_lost() -> None:
    known = set[str]()
    claims = ReplyLeases(known.__contains__)
    assert await claims.acquire("shared-1", 60.0, "mine")
    assert await _within(5.0, claims.acquire("shared-1", 60.0, "mine"))
    others = [asyncio.create_task(claims.acquire("shared-1", 60.0, who)) for who in ("another", "a third")]
    await asyncio.sleep(0.01)
    assert not any(other.done() for other in others)
    claims.release("shared-1", "mine")
    assert await others[0]
    claims.release("shared-1", "mine")  # late: it is another's by now
    assert await claims.acquire("shared-1", 60.0, "another")
    assert not await _within(0.05, claims.acquire("shared-1", 60.0, "a fourth"))
    known.add("shared-1")
    claims.release("shared-1", "another")
    assert not await others[1], "the reply is there"
    assert await claims.acquire("shared-2", 0.05)
    assert await _within(5.0, claims.acquire("shared-2", 0.05)), "its holder is lost"


async def _within(seconds: float, answer: Awaitable[bool]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        return False


async def test_a_verdict_that_comes_twice_while_its_replies_are_on_their_way_is_taken_once(tmp_path: Path) -> None:
    rows = debate_rows("c001", "e1")
    verdict = debate_result("c001", {row["path"]: row["reply_id"] for row in rows})
    async with open_writer(new_run(tmp_path)) as writer:
        await writer.register([labelled(1)])
        commits = [asyncio.create_task(writer.commit([verdict])) for _ in range(2)]
        await asyncio.sleep(0.05)
        writer.add_replies(batch(rows))
        async with asyncio.timeout(5):
            assert await asyncio.gather(*commits) == [[True], [True]]
        assert writer.progress.counts.finished == 1


async def test_a_limiter_of_an_older_owner_overwrites_no_younger_ones_ledger(tmp_path: Path) -> None:
    older, younger = Ledger(RunFolder(tmp_path), 1), Ledger(RunFolder(tmp_path), 2)
    accounts = {"usd": BudgetAccount(5.0)}
    assert not older.open(accounts)
    assert not younger.open(accounts)
    accounts["usd"].settle("a", reserved=1.0, spent=2.0)
    younger.write(younger.entry(accounts))
    with pytest.raises(RecordError, match="another process"):
        older.write(older.entry(accounts))
    assert younger.reserved() == {"usd": 1.0}


async def test_money_is_written_down_before_it_is_granted(tmp_path: Path) -> None:
    ledger = Ledger(RunFolder(tmp_path), 1)
    limiter = DurableLimiter({}, {"usd": BudgetAccount(5.0)}, ledger)
    asked = UsageReport(
        "a", [EndpointReport("m", waiting=2, wanted=2)], {"usd": BudgetTotals(wanted=2.0, least=1.0)}, 1
    )
    assert (await limiter.exchange(asked)).reserved == {"usd": 2.0}
    again = BudgetAccount(5.0)
    assert ledger.open({"usd": again}), "a limiter that is started again"
    assert again.free == 3.0


@pytest.mark.parametrize("data", [b"", b"{", b"[]"])
async def test_a_limiter_that_cannot_read_what_was_spent_grants_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "limits.json").write_bytes(data)
    with pytest.raises(RecordError, match=r"limits.json cannot be read: "):
        DurableLimiter({}, {"usd": BudgetAccount(5.0)}, Ledger(RunFolder(tmp_path), 1))
    assert (tmp_path / "limits.json").read_bytes() == data


@pytest.mark.parametrize("asked", ["history", "flush"])
async def test_a_cancelled_question_lets_nobody_write_beside_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    inside, most, begun, go_on = 0, 0, threading.Event(), threading.Event()
    append = Journal._append

    def held(self: Journal, taken: Any) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        begun.set()
        go_on.wait(30)
        append(self, taken)
        inside -= 1

    monkeypatch.setattr(Journal, "_append", held)
    async with open_writer(new_run(tmp_path), compact=False) as writer:
        await writer.register([labelled(0)])
        ask = {"history": lambda: writer.history([("c000", 0)]), "flush": writer.flush}
        first = asyncio.create_task(ask[asked]())
        await asyncio.to_thread(begun.wait, 30)
        first.cancel()
        await asyncio.sleep(0)
        await writer.register([labelled(1)])
        second = asyncio.create_task(writer.flush())
        await asyncio.sleep(0.05)
        first.cancel()
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await first
        await second
    assert (most, read_table(tmp_path, "cases", []).num_rows) == (1, 2)


@pytest.mark.parametrize("ended", [False, True])
async def test_rows_that_come_twice_are_noted_once(tmp_path: Path, ended: bool) -> None:
    """Also after their debate's end, and of replies that were dropped."""
    told = {"model": "simulated", "tokens_at_most": 7}
    async with open_writer(new_run(tmp_path), compact=False) as writer:
        replies = await submit_case(writer, 1)
        if ended:
            await writer.commit([debate_result("c001", replies)])
        lost = {"reply_id": "other", "unconfirmed_attempts": 1, "unconfirmed_tokens_max": 9}
        dropped = batch([debate_rows("c001", "e1")[0] | lost])
        for _ in range(2):
            writer.add_events([("c001", 0, Event(ABANDONED, "a", told), at) for at in (1.0, 2.0)])
            writer.add_replies(dropped)
        _, seen = writer.progress.events_since(0)
        assert [event.kind for event in seen].count(ABANDONED) == 3
    written = read_raw_rows(RunFolder(tmp_path), "events", ["kind"])
    assert sum(batch["kind"].to_pylist().count(ABANDONED) for batch in written) == 3


async def test_a_debate_whose_notes_went_with_the_writers_incarnation_is_replayed(tmp_path: Path) -> None:
    """Its replies are all there: they were written before, and its last note only was not."""
    rows = debate_rows("c001", "e1")
    replies = {row["path"]: row["reply_id"] for row in rows}
    async with open_writer(new_run(tmp_path), compact=False) as first:
        await first.register([labelled(1)])
        first.add_replies(batch(rows))  # killed before it wrote the note that it had taken
    in_first = debate_result("c001", replies, noted_in=first.incarnation)
    async with open_writer(RunFolder(tmp_path), compact=False) as second:
        await second.register([labelled(1)], 1)
        assert await second.commit([in_first]) == [False]
        second.add_events([("c001", 0, Event("round", "round/1", {"jsd": 0.25}), 1.0)])
        assert await second.commit([debate_result("c001", replies, noted_in=second.incarnation), in_first]) == [
            True,
            True,
        ]
    assert read_table(tmp_path, "events", ["data"])["data"].to_pylist() == ['{"jsd":0.25}']
