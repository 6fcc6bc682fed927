"""Round measures and token confidence in a writer: each event once, whatever is sent again, replayed or retried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from journal_writer import assert_same_signals, batch, debate_result, labelled, open_writer, reply
from structlog.testing import capture_logs

from moot.actors.models.sampling import Sampling
from moot.actors.record import token_confidence
from moot.actors.record.folder import RunFolder
from moot.actors.record.round_bands import LAST_ROUND
from moot.actors.record.signal_file import SignalFile, SignalReader
from moot.actors.record.signal_recovery import recover_signals
from moot.actors.record.signals import Signals, decode_signals, encode_signals
from moot.actors.record.token_confidence import Speaker, SpokenReply, TokenConfidence
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Event

Noted = tuple[str, int, Event, float]


def noted(case: int, number: int, attempt: int = 0, at: float = 1.0, **measures: Any) -> Noted:
    """Event of a round."""
    return f"c{case:03d}", attempt, Event("round", f"round/{number}", {"round": number, **measures}), at


def recorded(folder: RunFolder) -> Signals:
    """Signals as computed again from the record."""
    return recover_signals(folder, lambda _: True)


async def test_each_round_counts_once_when_it_is_recorded(folder: RunFolder) -> None:
    rounds = [noted(0, 0, jsd=0.5, entropy={"a": 0.2, "b": 0.4}), noted(0, 1, jsd=None, entropy={"a": 0.1, "b": None})]
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0), labelled(1)])
        writer.add_events(rounds)
        writer.add_events(rounds)  # sent again
        before = await writer.signals.signals()
        assert before.rounds("jsd").n.tolist() == [1, 0]  # without a verdict
        assert before.rounds("jsd").unknown.tolist() == [0, 1]
        assert before.rounds("entropy").mean.tolist() == [pytest.approx(0.3), pytest.approx(np.nan, nan_ok=True)]
        with pytest.raises(ConfigError, match="entropy"):
            before.rounds("entropies")
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0), labelled(1)])
        writer.add_events([(*each[:3], 2.0) for each in rounds])  # a replay repeats its notes
        writer.add_events([noted(1, 0, jsd=0.1), ("c001", 0, Event("gate", "gate", {"d": 0.3, "m": 0.2}), 1.0)])
        assert await writer.commit([debate_result("c000", {})]) == [True]
        writer.add_events(rounds)  # late
        live = await writer.signals.signals()
        assert live.rounds("jsd").n.tolist() == [2, 0]
        assert (live.rounds("d").mean.tolist(), live.rounds("m").n.tolist()) == ([0.3], [1])
        assert_same_signals(decode_signals(encode_signals(live)), live)
    assert_same_signals(recorded(folder), live)
    async with open_writer(folder) as writer:  # and from Parquet
        assert_same_signals(await writer.signals.signals(), live)
    assert_same_signals(recorded(folder), live)


async def test_of_a_round_that_a_replay_notes_with_other_values_the_last_counts(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0)])
        writer.add_events([noted(0, 1, d=0.5)])
        assert (await writer.signals.signals()).rounds("d").mean.tolist() == [0.5]
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0)])
        writer.add_events([noted(0, 1, d=0.25, at=2.0)])
        live = await writer.signals.signals()
        assert (live.rounds("d").n.tolist(), live.rounds("d").mean.tolist()) == ([1], [0.25])
    assert_same_signals(recorded(folder), live)


async def test_of_a_case_the_latest_attempt_with_a_verdict_counts(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0), labelled(1)])
        writer.add_events([noted(0, 1, d=0.5), noted(1, 1, d=0.125)])
        await writer.commit([debate_result("c000", {}, failure="bug", error="x")])
        for attempt, d in ((1, 0.75), (2, 1.0)):
            await writer.register([labelled(0)])
            writer.add_events([noted(0, 1, attempt, d=d)])
            failed = {"failure": "bug", "error": "x"} if attempt == 1 else {}
            await writer.commit([debate_result("c000", {}, attempt=attempt, **failed)])
            live = await writer.signals.signals()
            assert (live.rounds("d").n.tolist(), live.rounds("d").mean.tolist()) == ([2], [(d + 0.125) / 2])
            assert_same_signals(recorded(folder), live)


async def test_rounds_without_bound_are_counted_and_take_no_memory(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0)])
        writer.add_events([noted(0, number, d=0.5) for number in (-1, 0, LAST_ROUND, LAST_ROUND + 1, 10**12)])
        live = await writer.signals.signals()
        assert live.rounds("d").round.tolist() == [0, LAST_ROUND]
        assert live.round_sums.left_out == 3
    assert_same_signals(recorded(folder), live)


def said(case: int, path: str, reply_id: str, logprobs: list[float], **columns: Any) -> dict[str, Any]:
    """Row of a reply with tokens."""
    tokens = {"token": ["t"] * len(logprobs), "logprob": logprobs, "logprob_stage": "before"}
    return reply(f"c{case:03d}", path, reply_id, temperature=0.3, top_p=0.9, **tokens, **columns)


async def test_token_confidence_is_of_effective_replies_of_debates_that_did_not_fail(folder: RunFolder) -> None:
    rows = [
        said(0, "round/0/agent/0", "r0", [-1.0, -3.0]),
        said(0, "round/1/agent/0", "old", [-9.0]),
        said(0, "round/1/agent/0", "new", [-0.5], supersedes="old"),
        said(0, "round/1/agent/1~1~invalid", "r2~invalid", [-7.0]),
        said(0, "closing/agent/1", "r3", [-4.0, float("-inf")], role="agent/1"),
        said(0, "crit/round/1/agent/0/judge/0", "r4", [-0.25], role="judge/0"),
        said(1, "round/0/agent/0", "f0", [-8.0]),
    ]
    used = {"round/0/agent/0": "r0", "round/1/agent/0": "new", "closing/agent/1": "r3"}
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0), labelled(1)])
        for row in rows:
            writer.add_replies(batch([row]))
        assert not (await writer.signals.signals()).speakers()
        failed = debate_result("c001", {}, failure="bug", error="x")
        assert await writer.commit([debate_result("c000", used), failed]) == [True, True]
        live = await writer.signals.signals()
        sampling = Sampling(0.3, 0.9, "before")
        agent, judge = Speaker("agent", "simulated", sampling), Speaker("judge", "simulated", sampling)
        assert live.speakers() == [agent, judge]
        assert (live.tokens.kept[agent].replies, live.tokens.kept[judge].replies) == (3, 1)
        by_round = live.spoken_rounds(agent)
        assert (by_round.round.tolist(), by_round.mean.tolist()) == ([0, 1], [-2.0, -0.5])
        assert live.spoken(agent).mean[[0, 50]].tolist() == [pytest.approx(-5.5 / 3), pytest.approx(-1.25)]
        assert live.spoken_rounds(judge).round.tolist() == [1]
        with pytest.raises(ConfigError, match="judge"):
            live.spoken(agent._replace(role="nobody"))
    assert_same_signals(recorded(folder), live)


def test_speakers_beyond_the_most_are_counted_and_the_order_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_confidence, "MOST_SPEAKERS", 3)
    logprobs = np.array([-1.0], np.float32)
    replies = [SpokenReply.of("agent/0", f"m{n}", Sampling(n / 10, None, "raw"), "opening", logprobs) for n in range(6)]
    parts = [TokenConfidence.of(replies[place : place + 2]) for place in (0, 2, 4)]
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        merged = TokenConfidence()
        for place in order:
            merged = merged.merge(parts[place])
        assert [speaker.model for speaker in merged.speakers()] == ["m0", "m1", "m2"]
        assert (merged.left_out, merged.replies) == (3, 6)


async def test_the_file_has_the_signals_of_the_latest_owner_alone(folder: RunFolder, tmp_path: Path) -> None:
    reader = SignalReader(folder.path)
    assert reader.signals().is_empty
    async with open_writer(folder) as writer:
        await writer.register([labelled(0)])
        writer.add_events([noted(0, 0, d=0.5)])
    assert_same_signals(reader.signals(), recorded(folder))
    for epoch, number in ((7, 0), (8, 0), (8, 1)):
        file = SignalFile(folder.path, epoch, number)
        file.begin(writer.signals)
        await file.close()
    names = sorted(path.name for path in (folder.path / "signals").iterdir())
    assert names == ["e0008-w0.msgpack", "e0008-w1.msgpack"]
    assert reader.signals().rounds("d").n.tolist() == [2]
    (folder.path / "signals" / "e0008-w1.msgpack").write_bytes(b"of another version")
    with capture_logs() as logs:
        assert reader.signals().rounds("d").n.tolist() == [1]
    assert "w1" in logs[0]["file"]


async def test_a_file_that_cannot_be_written_does_not_stop_the_record(folder: RunFolder) -> None:
    (folder.path / "signals").write_text("in the way")
    with capture_logs() as logs:
        async with open_writer(folder) as writer:
            await writer.register([labelled(0)])
            writer.add_events([noted(0, 0, d=0.5)])
            assert await writer.commit([debate_result("c000", {})]) == [True]
    assert "page" in logs[0]["event"]
    assert recorded(folder).rounds("d").n.tolist() == [1]
