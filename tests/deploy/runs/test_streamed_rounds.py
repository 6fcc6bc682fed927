"""What a run streams of its rounds is what its record says, and what `moot show` says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from journal_writer import assert_same_signals

import moot
from moot.actors.record.folder import RunFolder
from moot.actors.record.signal_file import SignalReader
from moot.actors.record.signal_recovery import recover_signals
from moot.deploy.results.figures.round_trace import MEASURES, OPENINGS
from moot.deploy.results.figures.rounds import round_dynamics
from moot.deploy.results.record import RunRecord
from moot.protocols.round_values import ROUND_MEASURES
from moot.protocols.selene.events import GateDecided

LOGPROBS = {"agent": {"model": "simulated", "top_logprobs": 5}, "judge": "simulated"}


async def streamed(**options: Any) -> list[moot.Signals]:
    """Signals of a run, as they are streamed."""
    return [item async for item in moot.stream(**options) if isinstance(item, moot.Signals)]


@pytest.mark.parametrize(
    ("protocol", "task", "measures"),
    [
        ("evince", "sample-symptoms", {"kappa", "wd", "jsd", "kl", "mi", "ce", "entropy", "mixture_entropy", "crit"}),
        ("selene", "sample", {"d", "m"}),
        ("socrasynth", "sample-subjects", {"kappa", "crit", "gamma"}),
    ],
)
async def test_the_last_signals_are_those_of_the_record(
    protocol: str, task: str, measures: set[str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    options: dict[str, Any] = {"task": task, "protocol": protocol, "engine": "inline", "out": folder, "roles": LOGPROBS}
    first = await streamed(**options, limit=2)
    last = (await streamed(**options, limit=4))[-1]  # resumed, with more cases
    again = await streamed(**options, limit=4)  # nothing is left to do
    assert first[-1].measures() == last.measures()
    assert set(last.measures()) >= measures
    for other in (again[-1], recover_signals(RunFolder(folder), lambda _: True), SignalReader(folder).signals()):
        assert_same_signals(other, last)
    record = RunRecord(folder)
    shown = {each.round: each for each in round_dynamics(record).rounds}
    for measure in set(next(iter(shown.values())).measured):
        bands = last.rounds(measure)
        for number, n, mean in zip(bands.round.tolist(), bands.n.tolist(), bands.mean.tolist(), strict=True):
            if number in shown and shown[number].measured[measure].cases:
                found = shown[number].measured[measure]
                assert found.cases == n, (measure, number)
                assert found.mean == pytest.approx(mean), (measure, number)
    agents = [speaker for speaker in last.speakers() if speaker.role == "agent"]
    assert sum(last.tokens.kept[speaker].replies for speaker in agents) > 0
    assert all(len(last.spoken_rounds(speaker).round) > 1 for speaker in agents)
    if gates := [gate for _, gate in record.counted_events(GateDecided)]:
        for measure, values in (("d", [gate.d for gate in gates]), ("m", [gate.m for gate in gates])):
            known = [value for value in values if value is not None]
            bands = last.rounds(measure)
            assert (bands.n[0], bands.unknown[0]) == (len(known), len(values) - len(known))
            assert bands.mean[0] == pytest.approx(sum(known) / len(known))


def test_every_measure_has_a_chart() -> None:
    assert [measure.key for measure in MEASURES] == [key for key in ROUND_MEASURES]
    assert OPENINGS.key not in ROUND_MEASURES
