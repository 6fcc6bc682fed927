"""The running signals: those of the finished record on every engine, after a resume, and whatever did not count."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assessed_debate import Assessed, roles
from houses import hold, sorted_rows
from many_settings import key_of, made_cases
from signals_from_record import assert_same_signals, assert_signals_of

from moot.actors.arena import Arena
from moot.actors.record.progress import Counts
from moot.actors.record.signals import Signals
from moot.protocols.case import LabelledCase

CASES = 60


def cases(count: int = CASES) -> list[LabelledCase]:
    """Some of them fail."""
    return made_cases(count - 5, "assessed") + made_cases(5, "refuses", start=count)


async def until(arena: Arena, ended: int, given: list[Signals]) -> None:
    """Ask for the signals until so many debates have ended, and once more then."""
    archive, counts = arena._runtime.archive, Counts()
    while counts.finished + counts.failed < ended:
        given.append(await archive.signals())
        await asyncio.sleep(0.01)
        counts = await archive.counts()
    given.append(await archive.signals())


async def held(kind: str, folder: Path, labelled: list[LabelledCase], **changes: Any) -> Signals:
    """Hold a run, and what its archive gave as signals when all was done."""
    given = [Signals()]

    async def ask(arena: Arena) -> None:
        await until(arena, len(labelled), given)

    options: dict[str, Any] = {"seed": 4, "key": key_of(cases()), "meanwhile": ask} | changes
    on = options.pop("on", roles())
    await hold(kind, folder, Assessed(), labelled, on, **options)
    assert [one.replies for one in given] == sorted(one.replies for one in given)
    return given[-1]


@pytest.mark.parametrize(
    ("kind", "writers"),
    [
        ("inline", 1),
        pytest.param("actors", 3, marks=[pytest.mark.ray, pytest.mark.slow]),
    ],
)
async def test_the_running_signals_end_as_those_of_the_record(kind: str, writers: int, tmp_path: Path) -> None:
    signals = await held(kind, tmp_path / "run", cases(), writers=writers)
    assert signals.replies == 2 * (CASES - 5)
    assert_signals_of(signals, tmp_path / "run")
    correlations = signals.correlation("even", "constructor")
    assert (~np.isnan(correlations.value)).sum() > 100
    lines = str(correlations).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("logprob.first-3.mean")
    assert signals.group("even", "auditor").without_logprobs == signals.group("even", "auditor").replies > 0
    divergences = signals.divergences("even", "auditor")
    assert divergences.confident_but_weak.n == 0
    assert divergences.good_but_wrong.n > 0


async def test_a_run_that_was_gone_on_with_ends_with_the_same_signals(tmp_path: Path) -> None:
    # Auditors answer at once: whenever it is stopped, constructors are waited for, and their debates stay open.
    slowly: dict[str, Any] = {"on": roles(constructor="simulated?latency_ms=100"), "max_open": 6}
    labelled = cases(30)
    whole = await held("inline", tmp_path / "whole", labelled, **slowly)

    async def stop(arena: Arena, ended: int) -> None:
        await until(arena, ended, [])
        runtime: Any = arena._runtime
        opened: dict[Any, Any] = {}
        while not any(not debate.reply_ids for debate in opened.values()):  # the first reply of one is awaited
            await asyncio.sleep(0.001)
            opened = runtime._recorder._arrivals._open
            assert opened, "the run ended before it could be stopped"
        arena.stop()

    for ended in (10, 20):
        await held("inline", tmp_path / "parts", labelled, **slowly, meanwhile=partial(stop, ended=ended))
        begun, over = (
            {row["case_id"] for row in sorted_rows(tmp_path / "parts", table)} for table in ("tokens", "verdicts")
        )
        assert begun - over, "no debate was open"
    signals = await held("inline", tmp_path / "parts", labelled, **slowly)
    assert_signals_of(signals, tmp_path / "parts")
    assert_same_signals(signals, whole)


async def test_only_attempts_that_did_not_fail_count(tmp_path: Path) -> None:
    class Once(Assessed):
        """Refuses in its first run."""

        refusing = True

        async def run(self, case: Any, floor: Any) -> Any:
            verdict = await super().run(case, floor)
            assert not (self.refusing and case.id.endswith("3")), "it refuses"
            return verdict

    protocol, all_cases, seen = Once(), made_cases(14, "assessed"), list[Signals]()

    async def end(arena: Arena) -> None:
        given: list[Signals] = []
        await until(arena, 14 if protocol.refusing else 16, given)
        seen.append(given[-1])

    options: dict[str, Any] = {"key": key_of(all_cases), "meanwhile": end, "retry_failed": True}
    await hold("inline", tmp_path / "run", protocol, all_cases, roles(), **options)
    protocol.refusing = False
    await hold("inline", tmp_path / "run", protocol, all_cases, roles(), **options)
    assert [one.replies for one in seen] == [24, 28]
    assert_signals_of(seen[1], tmp_path / "run")


@pytest.mark.parametrize("save_tokens", ["chosen", "none"])
async def test_without_saved_tokens_no_log_probability_reaches_the_writer(tmp_path: Path, save_tokens: str) -> None:
    signals = await held("inline", tmp_path / "run", cases(20), save_tokens=save_tokens)
    group = signals.group("odd", "constructor")
    assert group.without_logprobs == (group.replies if save_tokens == "none" else 0)
    assert_signals_of(signals, tmp_path / "run")
