"""The running signals are those of the finished record on every engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assessed_debate import AssessedDebate, roles
from journal_writer import assert_same_signals
from many_settings import key_of, made_cases
from small_runs import run_debates

from moot.actors.dispatch.dispatcher import Dispatcher
from moot.actors.record.folder import RunFolder
from moot.actors.record.progress import Counts
from moot.actors.record.signal_recovery import recover_signals
from moot.actors.record.signals import Signals

CASES = 60


async def run_signals(kind: str, folder: Path, count: int, **changes: Any) -> Signals:
    """Run so many debates, of which five fail; returns the signals of the writers when all was done."""
    given = [Signals()]
    cases = made_cases(count - 5, "assessed") + made_cases(5, "refuses", start=count)

    async def ask(dispatcher: Dispatcher) -> None:
        writers, counts = dispatcher._runtime.writers, Counts()
        while counts.finished + counts.failed < count:
            given.append(await writers.signals())
            await asyncio.sleep(0.01)
            counts = await writers.counts()
        given.append(await writers.signals())

    await run_debates(
        kind, folder, AssessedDebate(), cases, roles(), seed=4, key=key_of(cases), meanwhile=ask, **changes
    )
    assert [one.replies for one in given] == sorted(one.replies for one in given)
    return given[-1]


@pytest.mark.parametrize(
    ("kind", "writers"), [("inline", 1), pytest.param("actors", 3, marks=[pytest.mark.ray, pytest.mark.slow])]
)
async def test_the_running_signals_end_as_those_of_the_record(kind: str, writers: int, tmp_path: Path) -> None:
    signals = await run_signals(kind, tmp_path / "run", CASES, writers=writers)
    assert signals.replies == 2 * (CASES - 5)
    assert_same_signals(signals, recover_signals(RunFolder(tmp_path / "run"), lambda _: True))
    correlations = signals.correlation("even", "constructor")
    assert (~np.isnan(correlations.value)).sum() > 100
    assert signals.group("even", "auditor").without_logprobs == signals.group("even", "auditor").replies > 0
    divergences = signals.divergences("even", "auditor")
    assert divergences.confident_but_weak.n == 0
    assert divergences.good_but_wrong.n > 0


@pytest.mark.parametrize("save_tokens", ["chosen", "none"])
async def test_without_saved_tokens_no_log_probability_reaches_the_writer(tmp_path: Path, save_tokens: str) -> None:
    signals = await run_signals("inline", tmp_path / "run", 20, save_tokens=save_tokens)
    group = signals.group("odd", "constructor")
    assert group.without_logprobs == (group.replies if save_tokens == "none" else 0)
