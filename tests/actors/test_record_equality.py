"""The record does not depend on where a debate ran: equal in every column that is not volatile."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from houses import APART, RUNTIMES, Held, assert_equal_records, hold, same_for_all
from many_settings import OTHERS, SETTINGS, EveryProtocol, ManySettings, key_of, made_cases, other_cases, roles_of_all
from openai_server import simulated_server

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.retry import RetryPolicy
from moot.protocols.case import LabelledCase
from moot.protocols.registry import make_protocol

SEED = 11
PER_SETTING, OF_OTHERS = 5, 4
FAULTY = 45
FAULTS = {"fail_rate": 0.25, "garble_rate": 0.15, "jitter_ms": 8.0}
PERSISTENT = RetryPolicy(max_attempts=3, base_s=0.005, cap_s=0.01, total_s=60.0)

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
def in_all_settings(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Held]:
    """Every configuration on the embedded simulated model, with vectors from a server that is slow and fails."""
    folder, cases = tmp_path_factory.mktemp("settings"), _all_settings()
    with simulated_server(None, fail_rate=0.1, jitter_ms=5.0) as port:
        changes: dict[str, Any] = {"encoder": f"http://127.0.0.1:{port}/v1#m", "seed": SEED, "key": key_of(cases)}
        return {
            kind: asyncio.run(hold(kind, folder / kind, EveryProtocol(), cases, roles_of_all(), **changes))
            for kind in RUNTIMES
        }


@pytest.fixture(scope="module")
def faulty(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Held]:
    """SELENE's default against a server that fails and garbles, inline and on Ray; a fresh server each."""
    folder, cases = tmp_path_factory.mktemp("faulty"), made_cases(FAULTY, "default", start=1000)
    held, port = {}, 0
    for kind in APART:
        labelled = AnswerKey.from_cases(cases)
        with simulated_server(labelled, port=port, seed=SEED, **FAULTS) as port:
            roles = same_for_all(f"http://127.0.0.1:{port}/v1#simulated", timeout_s=100.0)
            protocol = make_protocol("selene")
            held[kind] = asyncio.run(
                hold(kind, folder / kind, protocol, cases, roles, seed=SEED, retry=PERSISTENT, max_open=64)
            )
    return held


@pytest.mark.parametrize("kind", RUNTIMES[1:])
def test_every_configuration_has_the_same_record_everywhere(in_all_settings: dict[str, Held], kind: str) -> None:
    assert_equal_records(in_all_settings["inline"].folder, in_all_settings[kind].folder)


def test_every_configuration_was_debated(in_all_settings: dict[str, Held]) -> None:
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


def test_failures_and_repairs_are_recorded_alike(faulty: dict[str, Held]) -> None:
    assert_equal_records(faulty["inline"].folder, faulty["actors"].folder)


def test_the_faults_happened(faulty: dict[str, Held]) -> None:
    held = faulty["inline"]
    turns = held.rows("turns")
    outcomes = Counter(row["outcome"] for row in turns)
    failures = Counter(row["failure"] for row in turns if row["outcome"] == "failed")
    assert len(held.rows("verdicts")) == FAULTY
    assert min(outcomes[name] for name in ("ok", "repaired", "reasked", "invalid", "failed")) > 0, outcomes
    assert set(failures) == {"server", "unparsable"}
    assert max(row["http_attempts"] or 0 for row in turns) == 3
    flags = Counter(flag for row in held.rows("verdicts") for flag in row["flags"])
    assert flags["opening-failed"] > 0
    assert any(row["score"] is None for row in held.rows("judgments"))


def test_another_seed_gives_another_record(in_all_settings: dict[str, Held], tmp_path: Path) -> None:
    """The comparison above is not empty: replies do depend on the seed."""
    cases = made_cases(PER_SETTING, "default")
    other = asyncio.run(
        hold(
            "inline",
            tmp_path / "other",
            ManySettings(),
            cases,
            same_for_all("simulated"),
            seed=SEED + 1,
            key=key_of(cases),
        )
    )
    texts = {row["path"]: row["text"] for row in other.turns("default-0").values()}
    same = {row["path"]: row["text"] for row in in_all_settings["inline"].turns("default-0").values()}
    assert texts["opening/agent/0"] != same["opening/agent/0"]
