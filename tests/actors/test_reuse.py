"""Another run's replies answer equal asks: the record is the same, nothing is paid, and nobody gets another's reply."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest
from houses import Held, assert_same_but_unpaid, hold, same_for_all
from many_settings import SETTINGS, ManySettings, key_of, made_cases
from openai_server import ScriptedServer, simulated_server
from short_protocols import TEMPLATES

from moot.actors.models.answer_key import AnswerKey
from moot.actors.roles import RoleBinding
from moot.protocols.case import Case, LabelledCase
from moot.protocols.registry import make_protocol

SEED = 11
SHARED_PICTURE = "short_protocols:SharedPicture"
PER_SETTING = 2
FAULTS = {"fail_rate": 0.6, "garble_rate": 0.4}


def _all_settings() -> list[LabelledCase]:
    return [
        case
        for number, name in enumerate(SETTINGS)
        for case in made_cases(PER_SETTING, name, start=number * PER_SETTING)
    ]


def _held(
    folder: Path, cases: list[LabelledCase], reused: Held | None = None, protocol: Any = None, **changes: Any
) -> Held:
    """A run that begins with the replies of another one."""
    settings: dict[str, Any] = {"seed": SEED, "reuse": str(reused.folder) if reused else None, **changes}
    return asyncio.run(hold("inline", folder, protocol or ManySettings(), cases, same_for_all("simulated"), **settings))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Held:
    """Every configuration, on the simulated model."""
    cases = _all_settings()
    return _held(tmp_path_factory.mktemp("recorded") / "first", cases, key=key_of(cases))


def test_the_same_run_again_costs_nothing(recorded: Held, tmp_path: Path) -> None:
    # Without the answer key the simulated model would say other things: whatever is equal was not drawn anew.
    again = _held(tmp_path / "again", _all_settings(), recorded)
    assert_same_but_unpaid(recorded.folder, again.folder)
    turns = again.rows("turns")
    assert {row["reused_from"] for row in turns} == {
        f"first:{row['case_id']}/{row['attempt']}/{row['path']}" for row in recorded.rows("turns")
    }
    assert (again.counts.replies, again.counts.tokens_paid) == (0, 0)
    assert again.counts.reused == len(turns)
    assert again.counts.tokens_reused == recorded.counts.tokens_paid > 0
    assert not [event for event in again.rows("events") if event["kind"] == "asked"]


def test_a_chain_of_runs(recorded: Held, tmp_path: Path) -> None:
    """What was reused can be reused, also at another seed, where evidence sets and the order of replies are others."""
    cases = made_cases(PER_SETTING, "default")
    chain = [recorded]
    for number, seed in enumerate((SEED, SEED + 1, SEED + 1)):
        held = _held(tmp_path / str(number), cases, chain[-1], seed=seed, key=key_of(cases))
        chain.append(held)
        paid = [row for row in held.rows("turns") if row["reused_from"] is None]
        assert bool(paid) == (number == 1)
        assert all("/variant/" in row["path"] or row["path"].startswith("round/") for row in paid)
    assert_same_but_unpaid(chain[2].folder, chain[3].folder)


def test_failures_are_paid_again_and_unreadable_replies_travel(tmp_path: Path) -> None:
    cases = made_cases(60, "single-agent")
    key = AnswerKey.from_cases(cases)
    held: list[Held] = []
    port = 0
    for faults in (FAULTS, {}):
        with simulated_server(key, port=port, seed=SEED, **faults) as port:
            roles = same_for_all(f"http://127.0.0.1:{port}/v1#simulated")
            changes: dict[str, Any] = {"reuse": str(held[0].folder)} if held else {}
            folder = tmp_path / str(len(held))
            held.append(asyncio.run(hold("inline", folder, ManySettings(), cases, roles, seed=SEED, **changes)))
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=30) as reply:
                served = {step for step, stats in json.load(reply)["by_step"].items() if stats["calls"]}
    first, second = held
    before = {row["path"] + row["case_id"]: row for row in first.rows("turns")}
    failed = {row["case_id"] for row in before.values() if row["outcome"] == "failed"}
    reasked = {row["case_id"] for row in before.values() if row["outcome"] == "reasked"}
    assert failed
    assert reasked
    assert {step.partition("/")[0] for step in served} == failed
    for row in second.rows("turns"):
        assert (row["reused_from"] is None) == (row["case_id"] in failed)
        if row["case_id"] in reasked and row["path"].endswith("~1"):
            assert row["outcome"] == "invalid"
            assert row["reused_from"].endswith("~1")
            assert row["text"] == before[row["path"] + row["case_id"]]["text"]
    again = {row["case_id"] for row in second.rows("turns") if row["outcome"] == "reasked"}
    assert again == reasked
    assert {row["case_id"] for row in second.rows("verdicts") if row["failed"]} == set()
    costs = [
        {
            row["case_id"]: (row["calls"], row["prompt_tokens"], row["completion_tokens"])
            for row in each.rows("verdicts")
        }
        for each in held
    ]
    for case_id in reasked:
        assert costs[0][case_id] == costs[1][case_id], "the unreadable first reply counts, as it did"


def test_no_recorded_reply_speaks_for_two_agents(recorded: Held, tmp_path: Path) -> None:
    """Agents on one model ask the same; with more of them than were recorded the others are paid for."""
    cases, five = made_cases(PER_SETTING, "default"), make_protocol("selene", {"agents": 5})
    held = _held(tmp_path / "five", cases, recorded, five, key=key_of(cases))
    for labelled in cases:
        openings = {path: row for path, row in held.turns(labelled.case.id).items() if path.startswith("opening/")}
        assert [openings[f"opening/agent/{i}"]["reused_from"] is None for i in range(5)] == [False] * 3 + [True] * 2
        sources = [row["reused_from"] for row in held.turns(labelled.case.id).values() if row["reused_from"]]
        assert len(set(sources)) == len(sources) >= 3


def test_other_protocols_and_other_case_ids(recorded: Held, tmp_path: Path) -> None:
    """An equal fingerprint counts, wherever it stands; of equal ones the first by key."""
    first, *_ = made_cases(PER_SETTING, "default")
    twins = [LabelledCase(replace_id(first.case, f"twin-{i}"), i, first.gold) for i in range(2)]
    held = _held(tmp_path / "one", twins, recorded, make_protocol("single-agent"))
    for twin in twins:
        (turn,) = held.turns(twin.case.id).values()
        assert turn["reused_from"] == f"first:{first.case.id}/0/opening/agent/0"
        assert turn["text"] == recorded.turns(first.case.id)["opening/agent/0"]["text"]
        assert turn["p_normalised"] is not None
    assert held.counts.replies == 0


def replace_id(case: Case, case_id: str) -> Case:
    """The same case under another id."""
    return msgspec.structs.replace(case, id=case_id)


@pytest.mark.parametrize("save_tokens", ["none", "chosen", "all"])
def test_log_probabilities_are_kept_as_this_run_wants(save_tokens: str, recorded: Held, tmp_path: Path) -> None:
    cases = made_cases(PER_SETTING, "default")
    held = _held(tmp_path / "run", cases, recorded, save_tokens=save_tokens)
    ids = {labelled.case.id for labelled in cases}
    before = [row for row in recorded.rows("tokens") if row["case_id"] in ids]
    after = held.rows("tokens")
    assert len(before) > 0
    assert len(after) == (0 if save_tokens == "none" else len(before))
    for old, new in zip(before, after, strict=False):
        assert new["token"] == old["token"]
        assert repr(new["alt_logprob"]) == repr(old["alt_logprob"] if save_tokens == "all" else None)


def test_shared_replies_are_reused(tmp_path: Path) -> None:
    server = ScriptedServer(
        {
            "describe": lambda step, user: "a bird",
            "look": lambda step, user: {"answer": "Yes", "reasoning": "I looked.", "confidence": 0.5},
        }
    )
    held: list[Held] = []
    try:
        roles = {name: [RoleBinding(model=server.model)] for name in ("vision", "agent")}
        for _ in range(2):
            changes: dict[str, Any] = {"templates": TEMPLATES, "reuse": str(held[0].folder) if held else None}
            folder, protocol = tmp_path / str(len(held)), make_protocol(SHARED_PICTURE)
            held.append(asyncio.run(hold("inline", folder, protocol, made_cases(4, "any"), roles, **changes)))
        assert sum(server.calls.values()) == 5
    finally:
        server.close()
    assert held[1].counts.reused == 5
    assert_same_but_unpaid(held[0].folder, held[1].folder)
