"""Messages between the actors of a run are lost, repeated, late and out of order: the record is as if they were not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from faulty_transport import FaultyRuntime, FaultyTransport
from many_settings import ManySettings, key_of, made_cases
from small_runs import assert_same_but_unpaid, completed_cases, make_spec, run_debates, same_model_roles

from moot.actors.dispatch.dispatcher import Dispatcher
from moot.actors.dispatch.queue_dispatcher import QueueDispatcher
from moot.actors.limits.settings import Budget
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.tables import read_table
from moot.actors.remote import peers
from moot.actors.simulated.model import SimulatedModel
from moot.protocols.case import LabelledCase

SEED = 11
SCHEDULES = 2
TITLES = ("default", "every-agent", "resampled", "evince")
PER_TITLE = 3


def _cases() -> list[LabelledCase]:
    return [case for i, title in enumerate(TITLES) for case in made_cases(PER_TITLE, title, start=i * PER_TITLE)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, cases = tmp_path_factory.mktemp("undisturbed") / "run", _cases()
    roles, key = same_model_roles("simulated"), key_of(cases)
    asyncio.run(run_debates("inline", folder, ManySettings(), cases, roles, seed=SEED, key=key, max_open=8))
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


Noted = list[tuple[str, str]]
Told = dict[str, tuple[str | None, str, Noted]]
"""By case what was told: the answer, how it was reached, and the (kind, path) of every event, in order."""

Hold = Callable[[FaultyRuntime, Path, list[LabelledCase]], Awaitable[Told]]


async def _as_a_task(runtime: FaultyRuntime, folder: Path, cases: list[LabelledCase]) -> Told:
    """All cases are known when the run begins; no caller waits for a result."""
    await Dispatcher(runtime, iter(cases), completed_cases(folder)).run()
    return {}


async def _as_they_come(runtime: FaultyRuntime, folder: Path, cases: list[LabelledCase]) -> Told:
    """Cases are submitted during the run, each by a caller that waits for its verdict."""
    dispatcher = QueueDispatcher(runtime, completed_cases(folder))
    dispatcher.start()

    async def bring(number: int, case: LabelledCase) -> tuple[str | None, str, Noted]:
        await asyncio.sleep(0.02 * number)
        holding = asyncio.create_task(dispatcher.run_case(case))
        await asyncio.sleep(0)
        event_stream = dispatcher.event_stream(case.case.id)
        assert event_stream is not None
        noted = [(event.kind, event.path) async for event in event_stream.follow()]
        result = await holding
        return result.answer, result.how, noted

    brought = await asyncio.gather(*(bring(number, case) for number, case in enumerate(cases)))
    assert dispatcher.error is None
    assert await dispatcher.close(0.0) == 0
    return {case.case.id: told for case, told in zip(cases, brought, strict=True)}


async def _run(wire: FaultyTransport, folder: Path, cases: list[LabelledCase], how: Hold) -> Told:
    folder.mkdir()
    (folder / "run.yaml").write_text("test: true\n")
    owner = Ownership.acquire(RunFolder(folder))
    budget = Budget(max_tokens=10_000_000)
    spec = make_spec(
        folder,
        same_model_roles("simulated"),
        seed=SEED,
        key=key_of(cases),
        epoch=owner.epoch,
        max_open=8,
        budget=budget,
        writers=2,
    )
    runtime = FaultyRuntime(spec, ManySettings(), wire)
    await runtime.start()
    told = await how(runtime, folder, cases)
    await runtime.stop()
    owner.release()
    return told


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, SCHEDULES))])
@pytest.mark.parametrize("how", [_as_a_task, _as_they_come])
def test_faults_of_messages_change_nothing(
    seed: int, how: Hold, undisturbed: Path, paid: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, cases = FaultyTransport(seed), _cases()

    async def call(peer: peers.Peer, method: str, *args: Any) -> Any:
        return await wire.call(peer, method, *args)

    monkeypatch.setattr(peers.Peer, "call", call)
    print(f"schedule {seed}")

    async def within() -> Told:
        async with asyncio.timeout(60):
            return await _run(wire, tmp_path / "run", cases, how)

    told = asyncio.run(within())
    assert min(wire.faults[kind] for kind in ("lost there", "lost back", "twice", "late again", "watch broken")) > 0
    assert_same_but_unpaid(undisturbed, tmp_path / "run")
    again = {step: times for step, times in paid.items() if times > 1}
    assert not again
    if how is _as_they_come:
        rows = read_table(tmp_path / "run", "verdicts").to_pylist()
        assert {case: each[:2] for case, each in told.items()} == {
            row["case_id"]: (row["answer"], row["how"]) for row in rows
        }
        noted = {case: Counter(("verdict", "verdict") for _ in range(1)) for case in told}
        for row in read_table(tmp_path / "run", "events").to_pylist():
            noted[row["case_id"]][row["kind"], row["path"]] += 1
        assert {case: Counter(each[2]) for case, each in told.items()} == noted
