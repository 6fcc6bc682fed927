"""The record does not depend on where a debate ran: equal in every column that is not volatile."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from many_settings import OTHERS, SETTINGS, EveryProtocol, key_of, made_cases, other_cases, roles_of_all
from openai_server import simulated_server
from small_runs import RUNTIMES, FinishedRun, assert_equal_records, run_debates

from moot.protocols.case import LabelledCase

SEED = 11
PER_SETTING, OF_OTHERS = 5, 4

pytestmark = [pytest.mark.slow, pytest.mark.ray]


def _all_settings() -> list[LabelledCase]:
    made = [
        case
        for number, name in enumerate(SETTINGS)
        for case in made_cases(PER_SETTING, name, start=number * PER_SETTING)
    ]
    cases = [*made, *other_cases(OF_OTHERS)]
    return [LabelledCase(item.case, number, item.gold, reference=item.reference) for number, item in enumerate(cases)]


@pytest.fixture(scope="module")
def in_all_settings(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, FinishedRun]:
    """Every configuration on the embedded simulated model, with vectors from a server that is slow and fails."""
    folder, cases = tmp_path_factory.mktemp("settings"), _all_settings()
    with simulated_server(None, fail_rate=0.1, jitter_ms=5.0) as port:
        changes: dict[str, Any] = {"encoder": f"http://127.0.0.1:{port}/v1#m", "seed": SEED, "key": key_of(cases)}
        return {
            kind: asyncio.run(run_debates(kind, folder / kind, EveryProtocol(), cases, roles_of_all(), **changes))
            for kind in RUNTIMES
        }


@pytest.mark.parametrize("kind", RUNTIMES[1:])
def test_every_configuration_has_the_same_record_everywhere(in_all_settings: dict[str, FinishedRun], kind: str) -> None:
    assert_equal_records(in_all_settings["inline"].folder, in_all_settings[kind].folder)


def test_every_configuration_was_debated(in_all_settings: dict[str, FinishedRun]) -> None:
    held = in_all_settings["inline"]
    verdicts = held.rows("verdicts")
    assert len(verdicts) == PER_SETTING * len(SETTINGS) + len(other_cases(OF_OTHERS))
    assert not [row["error"] for row in verdicts if row["failed"]]
    how = Counter((row["case_id"].rpartition("-")[0], row["how"]) for row in verdicts)
    assert {name for name, _ in how} == {*SETTINGS, *OTHERS}
    assert held.rows("embeddings")
    assert how["single-agent", "single"] == how["majority-vote", "vote"] == PER_SETTING
    assert 0 < how["default", "skipped"] < PER_SETTING
    assert how["printed", "skipped"] == 0
    kinds = Counter(row["kind"] for row in held.rows("events"))
    assert kinds["branches"] == PER_SETTING
    for kind in ("audit", "crit", "topics", "panel", "assessment", "evidence", "ruling"):
        assert kinds[kind] > 0, kind
    for kind in RUNTIMES:
        assert not [row["error"] for row in in_all_settings[kind].rows("verdicts") if row["failed"]], kind
        assert in_all_settings[kind].counts == held.counts
