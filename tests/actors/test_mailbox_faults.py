"""Messages between the actors of a run are lost, repeated, late and out of order: the record is as if they were not."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from faulty_wire import Wire, WiredRuntime
from houses import assert_same_but_unpaid, hold, make_spec, past_of, same_for_all
from many_settings import ManySettings, key_of, made_cases

from moot.actors.arena import Arena
from moot.actors.limits.settings import Budget
from moot.actors.models.simulated.model import SimulatedModel
from moot.actors.record.folder import Ownership, RunFolder
from moot.actors.remote import peers
from moot.protocols.case import LabelledCase

SEED = 11
SCHEDULES = 6
TITLES = ("default", "every-agent", "resampled", "evince")
PER_TITLE = 4


def _cases() -> list[LabelledCase]:
    return [case for i, title in enumerate(TITLES) for case in made_cases(PER_TITLE, title, start=i * PER_TITLE)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, cases = tmp_path_factory.mktemp("undisturbed") / "run", _cases()
    roles, key = same_for_all("simulated"), key_of(cases)
    asyncio.run(hold("inline", folder, ManySettings(), cases, roles, seed=SEED, key=key, max_open=8))
    return folder


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the model was called, by step key."""
    counted: Counter[str] = Counter()
    complete = SimulatedModel.complete

    async def counting(self: SimulatedModel, *args: Any, step_key: str, **options: Any) -> Any:
        counted[step_key] += 1
        await asyncio.sleep(0.001 * (counted.total() % 7))
        return await complete(self, *args, step_key=step_key, **options)

    monkeypatch.setattr(SimulatedModel, "complete", counting)
    return counted


async def _hold(wire: Wire, folder: Path, cases: list[LabelledCase]) -> None:
    folder.mkdir()
    (folder / "run.yaml").write_text("test: true\n")
    owner = Ownership.take(RunFolder(folder))
    budget = Budget(max_tokens=10_000_000)
    spec = make_spec(
        folder,
        same_for_all("simulated"),
        seed=SEED,
        key=key_of(cases),
        epoch=owner.epoch,
        max_open=8,
        budget=budget,
        writers=2,
    )
    runtime = WiredRuntime(spec, ManySettings(), wire)
    await runtime.start()
    await Arena(runtime, iter(cases), past_of(folder)).run()
    await runtime.stop()
    owner.release()


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_faults_of_messages_change_nothing(
    seed: int, undisturbed: Path, paid: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, cases = Wire(seed), _cases()

    async def call(peer: peers.Peer, method: str, *args: Any) -> Any:
        return await wire.call(peer, method, *args)

    monkeypatch.setattr(peers.Peer, "call", call)
    print(f"schedule {seed}")

    async def within() -> None:
        async with asyncio.timeout(60):
            await _hold(wire, tmp_path / "run", cases)

    asyncio.run(within())
    assert min(wire.faults[kind] for kind in ("lost there", "lost back", "twice", "late again", "watch broken")) > 0
    assert_same_but_unpaid(undisturbed, tmp_path / "run")
    again = {step: times for step, times in paid.items() if times > 1}
    assert not again
