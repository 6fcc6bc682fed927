"""What one writer keeps of signals, row by row: open debates, superseded replies, odd values, what may be pooled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from journal_writer import assert_same_signals, batch, debate_result, labelled, open_writer, reply
from structlog.testing import capture_logs

from moot.actors.models.sampling import Sampling
from moot.actors.record.folder import RunFolder
from moot.actors.record.recovery import reply_rows
from moot.actors.record.signals import Signals, decode_signals, encode_signals
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Event


def assessment(case: int, quality: float = 7.0, path: str = "a", at: float = 1.0) -> tuple[str, int, Event, float]:
    """What judges found of a reply."""
    told = {"reply": path, "role": "constructor", "domain": "m", "scores": {"x": quality / 3}, "flag": 0.0}
    return f"c{case:03d}", 0, Event("assessment", f"assessment/{path}", told | {"quality": quality}), at


def said(case: int, reply_id: str, logprobs: list[float] | None, **columns: Any) -> Any:
    """A batch of one reply."""
    tokens = {} if logprobs is None else {"token": ["t"] * len(logprobs), "logprob": logprobs}
    return batch([reply(f"c{case:03d}", "a", reply_id, temperature=0.3, top_p=0.9, **tokens, **columns)])


async def test_an_open_debate_resumes_from_the_record(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0), labelled(1)])
        writer.add_replies(said(0, "r0", [-0.5, -1.5]))
        writer.add_replies(said(1, "r1", [-0.25]))
        writer.add_events([assessment(0)])

    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0), labelled(1)])
        writer.add_events([assessment(0, at=2.0), assessment(1, quality=9.0)])  # one again
        assert (await writer.signals.signals()).replies == 0
        assert await writer.commit([debate_result("c000", {"a": "r0"}), debate_result("c001", {"a": "r1"})]) == [
            True,
            True,
        ]
        signals = await writer.signals.signals()
        assert (signals.replies, signals.group("m", "constructor").without_logprobs) == (2, 0)
        assert signals.bands("m", "constructor").mean[[0, 100]].tolist() == [-0.375, -0.875]

    async with open_writer(folder) as writer:
        assert_same_signals(await writer.signals.signals(), signals)
    async with open_writer(folder) as writer:  # now from Parquet
        assert_same_signals(await writer.signals.signals(), signals)


async def test_of_a_superseded_reply_the_new_one_counts(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0), labelled(1)])
        for case in (0, 1):
            writer.add_replies(said(case, f"old{case}", [-5.0, -5.0]))
            writer.add_replies(said(case, f"late{case}", [-7.0]))
        writer.add_replies(said(0, "new0", [-1.0], supersedes="old0"))
        writer.add_replies(said(1, "new1", None, supersedes="old1"))
        writer.add_events([assessment(0, quality=3.0), assessment(1), assessment(0, quality=8.0, at=2.0)])
        await writer.commit([debate_result("c000", {"a": "new0"}), debate_result("c001", {"a": "new1"})])
        signals = await writer.signals.signals()
        group = signals.group("m", "constructor")
        assert (group.replies, group.without_logprobs) == (2, 1)
        assert set(signals.bands("m", "constructor").mean.tolist()) == {-1.0}
        assert sorted(group.joint.quality().tolist()) == [7.0, 8.0]
    async with open_writer(folder, compact=False) as writer:
        assert_same_signals(await writer.signals.signals(), signals)


async def test_odd_values_and_odd_events_stop_nothing(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(number) for number in range(3)])
        for case, tokens in enumerate(([float("-inf"), -1.0, -1.0], [], [-9999.0])):
            writer.add_replies(said(case, f"r{case}", tokens))
        with capture_logs() as logs:
            writer.add_events([assessment(0), assessment(1), assessment(2)])
            writer.add_events([("c000", 0, Event("assessment", "elsewhere", {"mine": True}), 1.0)])
            writer.add_events([assessment(0, path="never said")])
        assert [line["case"] for line in logs] == ["c000"]
        await writer.commit([debate_result(f"c{number:03d}", {"a": f"r{number}"}) for number in range(3)])
        signals = await writer.signals.signals()
        assert signals.models("m", "constructor") == ["simulated", "unknown"]
        group = signals.group("m", "constructor", model="simulated")
        assert (group.replies, group.without_logprobs) == (3, 1)
        assert signals.group("m", "constructor", model="unknown").replies == 1  # of what nobody said
        assert signals.bands("m", "constructor", model="simulated").n[[0, 100]].tolist() == [0, 1]
        assert signals.divergences("m", "constructor", model="simulated").unsure_but_right.n == 0


async def judged(folder: RunFolder, replies: Sequence[Any]) -> tuple[Signals, Signals]:
    """Of debates of one judged reply each: as their writer has kept them, and as the next one reads them back."""
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(number) for number in range(len(replies))])
        for each in replies:
            writer.add_replies(each)
        writer.add_events([assessment(number) for number in range(len(replies))])
        await writer.commit([debate_result(f"c{number:03d}", {"a": f"r{number}"}) for number in range(len(replies))])
        written = await writer.signals.signals()
    async with open_writer(folder, compact=False) as writer:
        return written, await writer.signals.signals()


async def test_models_and_stages_are_not_pooled(folder: RunFolder) -> None:
    kinds = [("big", "before", [-1.0]), ("big", "after", [-2.0]), ("small", "before", [-3.0]), ("small", None, None)]
    written, read_back = await judged(
        folder,
        [said(i, f"r{i}", logprobs, model=model, logprob_stage=at) for i, (model, at, logprobs) in enumerate(kinds)],
    )
    group = ("m", "constructor")
    before = Sampling(0.3, 0.9, "before")
    for one in (written, read_back, decode_signals(encode_signals(written))):
        assert (one.groups(), one.models(*group)) == ([group], ["big", "small"])
        assert one.samplings(*group, model="small") == [before]
        assert set(one.bands(*group, model="small").mean.tolist()) == {-3.0}  # one sampling is not named
        assert one.group(*group, model="small").replies == 2
        assert set(one.bands(*group, before, model="big").mean.tolist()) == {-1.0}
        with pytest.raises(ConfigError, match=r"\['big', 'small'\]"):
            one.correlation(*group)
        with pytest.raises(ConfigError, match="'bigger'"):
            one.bands(*group, model="bigger")
        with pytest.raises(ConfigError, match="sampled in several ways"):
            one.divergences(*group, model="big")


async def test_forced_tokens_are_excluded_where_the_record_states_the_constraint(
    folder: RunFolder,
) -> None:
    kinds: list[bool | None] = [True, False, None]
    replies = [said(i, f"r{i}", [0.0, -3.0], logprob_stage="unknown", held=held) for i, held in enumerate(kinds)]
    for signals in await judged(folder, replies):
        means = {
            sampling.constrained: signals.bands("m", "constructor", sampling).mean[[0, 100]].tolist()
            for sampling in signals.samplings("m", "constructor")
        }
        assert {held: np.isnan(ends[0]) for held, ends in means.items()} == {True: True, False: False}
        assert {ends[1] for ends in means.values()} == {-3.0}


async def test_a_record_without_anything_to_aggregate_is_not_read_for_signals(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0)])
        writer.add_replies(said(0, "r0", None))
        writer.add_events([("c000", 0, Event("note", "here", {"mine": True}), 1.0)])
        await writer.commit([debate_result("c000", {"a": "r0"})])
    read: list[str] = []

    def watched(*args: Any) -> Any:
        for row in reply_rows(*args):
            read.append(row["case_id"])
            yield row

    monkeypatch.setattr("moot.actors.record.signal_recovery.reply_rows", watched)
    async with open_writer(folder, compact=False) as writer:
        assert not read
        await writer.register([labelled(0), labelled(1)])
        writer.add_replies(said(1, "r1", None))
        writer.add_events([assessment(1)])
        await writer.commit([debate_result("c001", {"a": "r1"})])
    async with open_writer(folder, compact=False) as writer:
        assert read == ["c000", "c001"]
        assert (await writer.signals.signals()).replies == 1


async def test_who_stops_asking_takes_nothing_along(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(number) for number in range(3)])
        monkeypatch.setattr("moot.actors.record.signal_aggregator.FOLD_TOKENS", 3)
        for number in range(3):
            writer.add_replies(said(number, f"r{number}", [-1.0, -2.0]))
            writer.add_events([assessment(number)])
            await writer.commit([debate_result(f"c{number:03d}", {"a": f"r{number}"})])
            asking = asyncio.create_task(writer.signals.signals())
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
        assert (await writer.signals.signals()).replies == 3
