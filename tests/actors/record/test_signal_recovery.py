"""Recovery of signals from a record: how often it is read, and what order and repetition do to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journal_writer import assert_same_signals, batch, debate_result, labelled, open_writer, reply

from moot.actors.record import signal_recovery, tables
from moot.actors.record.folder import RunFolder
from moot.actors.record.segments import read_segment
from moot.actors.record.signal_recovery import recover_signals
from moot.protocols.messages import Event

DEBATES = 24


def said(case: int, path: str, reply_id: str, **columns: Any) -> dict[str, Any]:
    """Row of a reply with two tokens."""
    return reply(f"c{case:03d}", path, reply_id, token=["t", "u"], logprob=[-0.1 * case, -1.0], **columns)


async def test_a_record_is_read_as_often_whatever_the_number_of_debates(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debates overlap, some replies are superseded, and what is aggregated at once is little."""
    assessed = {"reply": "opening/agent/0", "role": "agent", "domain": "m", "scores": {"x": 2.0}, "flag": 0.0}
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(number) for number in range(DEBATES)])
        for path in ("opening/agent/0", "round/1/agent/0"):
            for case in range(DEBATES):
                writer.add_replies(batch([said(case, path, f"{case}-{path}")]))
                noted = Event("round", path, {"round": len(path) % 2, "d": case / DEBATES})
                writer.add_events([(f"c{case:03d}", 0, noted, 1.0)])
        for case in range(0, DEBATES, 3):
            again = said(case, "opening/agent/0", f"{case}-again", supersedes=f"{case}-opening/agent/0")
            writer.add_replies(batch([again]))
        judged = Event("assessment", "assessment", assessed | {"quality": 5.0})
        writer.add_events([(f"c{case:03d}", 0, judged, 2.0) for case in range(0, DEBATES, 2)])
        failed = {"failure": "bug", "error": "x"}
        results = [debate_result(f"c{case:03d}", {}, **(failed if case % 5 == 4 else {})) for case in range(DEBATES)]
        await writer.commit(results)
        live = await writer.signals.signals()
    assert (live.replies, live.tokens.replies) == (10, 40)
    times = Counter[str]()

    def counted(path: Path, *rest: Any) -> Iterator[Any]:
        times[path.name.rpartition("-")[2]] += 1
        return read_segment(path, *rest)

    monkeypatch.setattr(tables, "read_segment", counted)
    monkeypatch.setattr(signal_recovery, "_ITEMS_TOGETHER", 3)
    assert_same_signals(recover_signals(folder, lambda _: True), live)
    assert times == {"verdicts.arrows": 1, "events.arrows": 2, "replies.arrows": 2}
