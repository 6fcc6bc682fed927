"""`replay/RUN` gives a recorded run again, exactly, and ends a case as soon as anything differs; `reuse` pays for the
rest."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from many_settings import SETTINGS, ManySettings, key_of, made_cases
from openai_server import ScriptedServer, simulated_server, stats_of
from short_protocols import PICTURE, SCRIPTS, TEMPLATES
from small_runs import QUICK, FinishedRun, assert_equal_records, assert_same_but_unpaid, run_debates, same_model_roles

from moot.actors.agent.roles import RoleBinding
from moot.actors.models.interface import ModelError
from moot.actors.models.retry import call_with_retries
from moot.actors.record.replay_model import ReplayModel
from moot.actors.simulated.answer_key import AnswerKey
from moot.protocols.case import LabelledCase
from moot.protocols.messages import Decoding, Message
from moot.protocols.registry import make_protocol
from moot.protocols.templates import Templates

SEED = 11
SHARED_PICTURE = "short_protocols:SharedPicture"
FAULTS = {"fail_rate": 0.6, "garble_rate": 0.4}
EACH = 2
"""Cases of each setting."""

WITHOUT = ("model", "fingerprint")
"""Columns that name the model: in a replay that is the run it comes from."""


def _cases() -> list[LabelledCase]:
    return [case for number, name in enumerate(SETTINGS) for case in made_cases(EACH, name, start=EACH * number)]


def _run(
    folder: Path, cases: list[LabelledCase], reused: FinishedRun | None = None, protocol: Any = None, **changes: Any
) -> FinishedRun:
    """A run that begins with the replies of another one."""
    settings: dict[str, Any] = {"seed": SEED, "reuse": str(reused.folder) if reused else None, **changes}
    return asyncio.run(
        run_debates("inline", folder, protocol or ManySettings(), cases, same_model_roles("simulated"), **settings)
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """Every configuration, on the simulated model."""
    cases = _cases()
    return _run(tmp_path_factory.mktemp("recorded") / "first", cases, key=key_of(cases))


def replayed(
    folder: Path, recorded: Path, cases: list[LabelledCase], kind: str = "inline", **changes: Any
) -> FinishedRun:
    values: dict[str, Any] = {"seed": SEED, "roles": same_model_roles(f"replay/{recorded}")} | changes
    return asyncio.run(run_debates(kind, folder, ManySettings(), cases, **values))


@pytest.mark.parametrize("kind", ["inline", pytest.param("actors", marks=[pytest.mark.ray, pytest.mark.slow])])
def test_a_replay_is_equal(kind: str, recorded: FinishedRun, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if kind != "inline":
        request.getfixturevalue("local_ray")
    again = replayed(tmp_path / "again", recorded.folder, _cases(), kind)
    assert_equal_records(recorded.folder, again.folder, without=WITHOUT)
    turns = again.rows("turns")
    assert {row["model"] for row in turns} == {"replay/first"}
    assert turns[0]["reused_from"] == f"first:{turns[0]['case_id']}/0/{turns[0]['path']}"
    assert (again.counts.paid.calls, again.counts.paid.tokens) == (0, 0)
    assert again.counts.reused.tokens == recorded.counts.paid.tokens
    assert len(again.rows("tokens")) > len(again.rows("verdicts"))


def test_failures_and_repairs_come_again_without_a_server(tmp_path: Path) -> None:
    cases = made_cases(24, "default")
    with simulated_server(AnswerKey.from_cases(cases), seed=SEED, fail_rate=0.4, garble_rate=0.3) as port:
        roles = same_model_roles(f"http://127.0.0.1:{port}/v1#simulated")
        first = asyncio.run(run_debates("inline", tmp_path / "first", ManySettings(), cases, roles, seed=SEED))
    again = replayed(tmp_path / "again", first.folder, cases)
    assert_equal_records(first.folder, again.folder, without=WITHOUT)
    outcomes = Counter(row["outcome"] for row in again.rows("turns"))
    assert min(outcomes[name] for name in ("ok", "repaired", "reasked", "invalid", "failed")) > 0, outcomes
    assert again.counts.paid.calls == 0, "a failure that is replayed was not paid for either"


def _shared_picture(folder: Path, model: str) -> FinishedRun:
    """Debates that share a picture's description."""
    roles = {name: [RoleBinding(model=model)] for name in ("vision", "agent")}
    cases = made_cases(3, "any")
    return asyncio.run(run_debates("inline", folder, make_protocol(SHARED_PICTURE), cases, roles, templates=TEMPLATES))


def test_pictures_and_shared_replies(tmp_path: Path) -> None:
    server = ScriptedServer(SCRIPTS)
    held = _shared_picture(tmp_path / "first", server.model)
    server.close()
    again = _shared_picture(tmp_path / "again", f"replay/{held.folder}")
    # The id of what is shared is a hash with the fingerprint in it.
    assert_equal_records(held.folder, again.folder, without=(*WITHOUT, "case_id"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("prompt", "message 1 (system) differs from character 0: was 'Take text"),
        ("temperature", "`temperature` was 0.3, is 0.9"),
        ("case", "holds no reply to this step"),
        ("seed", "message 2 (user) differs from character "),
    ],
)
def test_whatever_differs_ends_the_case(change: str, said: str, recorded: FinishedRun, tmp_path: Path) -> None:
    changes: dict[str, Any] = {}
    cases = made_cases(EACH, "always-debate", start=EACH * list(SETTINGS).index("always-debate"))
    if change == "prompt":
        opening = Templates().sources["selene/opening"]
        changes["templates"] = {"selene/opening": opening.replace("{% block system %}", "{% block system %}Now, ")}
    if change == "temperature":
        changes["roles"] = same_model_roles(f"replay/{recorded.folder}", temperature=0.9)
    if change == "case":
        cases = made_cases(EACH, "always-debate", start=300)
    if change == "seed":
        changes["seed"] = SEED + 1
    again = replayed(tmp_path / "again", recorded.folder, cases, **changes)
    verdicts = again.rows("verdicts")
    failed = [row for row in verdicts if row["failed"]]
    assert len(failed) == len(verdicts) if change != "seed" else failed
    for row in failed:
        assert row["failure"] == "replay_diverged"
        assert said in row["error"]
        assert row["error"].startswith(f"{row['case_id']}/0/")
        assert "\n" not in row["error"]
    assert again.counts.paid.calls == 0


def test_log_probabilities_that_were_not_kept(tmp_path: Path) -> None:
    """A gate that was fed by them would see nothing, and decide otherwise: that is a difference, too."""
    cases = made_cases(2, "default")
    held = _run(tmp_path / "first", cases, save_tokens="chosen")
    again = replayed(tmp_path / "again", held.folder, cases)
    assert {row["failure"] for row in again.rows("verdicts")} == {"replay_diverged"}
    assert all("its log-probabilities were not kept (--save-tokens)" in r["error"] for r in again.rows("verdicts"))


async def test_one_reply_with_its_tokens(recorded: FinishedRun) -> None:
    model = ReplayModel(recorded.folder)
    await model.check()
    row = recorded.turns("default-0")["opening/agent/1"]
    (tokens,) = (
        each for each in recorded.rows("tokens") if (each["case_id"], each["path"]) == ("default-0", "opening/agent/1")
    )
    messages = _messages(row)
    plain = Decoding(temperature=0.3, top_p=0.9, max_tokens=400)
    wanted = msgspec.structs.replace(plain, top_logprobs=5)
    step = "default-0/0/opening/agent/1"
    reply = await model.complete(messages, wanted, step_key=step)
    assert (reply.text, reply.finish_reason) == (row["text"], "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (row["prompt_tokens"], len(tokens["token"]))
    assert reply.tokens is not None
    assert reply.tokens.tokens == tokens["token"]
    assert reply.tokens.alt_logprob.shape == (len(tokens["token"]), 5)
    np.testing.assert_array_equal(reply.tokens.alt_logprob.ravel(), np.array(tokens["alt_logprob"], np.float32))
    assert reply.replayed is not None
    assert reply.replayed.logprob_stage == "before"
    assert (await model.complete(messages, plain, step_key=step)).tokens is None
    seen = (*messages[:-1], Message("user", messages[-1].content, (PICTURE,)))
    with pytest.raises(ModelError, match="other pictures"):
        await model.complete(seen, wanted, step_key=step)
    with pytest.raises(ModelError, match="2 messages were sent, now 1"):
        await model.complete(messages[:1], wanted, step_key=step)


def _messages(row: dict[str, Any]) -> list[Message]:
    return [Message(role, content) for role, content in json.loads(row["messages"])]


async def test_a_recorded_failure_is_not_tried_again(tmp_path: Path) -> None:
    server = ScriptedServer(SCRIPTS, failing="look")
    held = await asyncio.to_thread(_shared_picture, tmp_path / "run", server.model)
    server.close()
    row = held.turns("any-0")["look"]
    assert (row["failure"], row["http_attempts"]) == ("server", None)
    waits: list[float] = []

    async def waited(seconds: float) -> None:
        waits.append(seconds)

    model = ReplayModel(held.folder)
    with pytest.raises(ModelError) as raised:
        await call_with_retries(
            QUICK, lambda: model.complete(_messages(row), Decoding(), step_key="any-0/0/look"), sleep=waited
        )
    assert (raised.value.kind, raised.value.message) == ("server", row["error"])
    assert not waits


# Replies of another run that answer equal asks


def test_the_same_run_again_costs_nothing(recorded: FinishedRun, tmp_path: Path) -> None:
    # Without the answer key the simulated model would say other things: whatever is equal was not drawn anew.
    again = _run(tmp_path / "again", _cases(), recorded)
    assert_same_but_unpaid(recorded.folder, again.folder)
    turns = again.rows("turns")
    assert {row["reused_from"] for row in turns} == {
        f"first:{row['case_id']}/{row['attempt']}/{row['path']}" for row in recorded.rows("turns")
    }
    assert (again.counts.paid.calls, again.counts.paid.tokens) == (0, 0)
    assert again.counts.reused.calls == len(turns)
    assert again.counts.reused.tokens == recorded.counts.paid.tokens > 0
    assert not [event for event in again.rows("events") if event["kind"] == "asked"]


def test_a_chain_of_runs(recorded: FinishedRun, tmp_path: Path) -> None:
    """What was reused can be reused, also at another seed, where evidence sets and the order of replies are others."""
    cases = made_cases(EACH, "default")
    chain = [recorded]
    for number, seed in enumerate((SEED, SEED + 1, SEED + 1)):
        held = _run(tmp_path / str(number), cases, chain[-1], seed=seed, key=key_of(cases))
        chain.append(held)
        paid = [row for row in held.rows("turns") if row["reused_from"] is None]
        assert bool(paid) == (number == 1)
        assert all("/variant/" in row["path"] or row["path"].startswith("round/") for row in paid)
    assert_same_but_unpaid(chain[2].folder, chain[3].folder)


def test_failures_are_paid_again_and_unreadable_replies_travel(tmp_path: Path) -> None:
    cases = made_cases(60, "single-agent")
    key = AnswerKey.from_cases(cases)
    held: list[FinishedRun] = []
    port = 0
    for faults in (FAULTS, {}):
        with simulated_server(key, port=port, seed=SEED, **faults) as port:
            roles = same_model_roles(f"http://127.0.0.1:{port}/v1#simulated")
            reused = str(held[0].folder) if held else None
            folder = tmp_path / str(len(held))
            held.append(
                asyncio.run(run_debates("inline", folder, ManySettings(), cases, roles, seed=SEED, reuse=reused))
            )
            served = {step for step, stats in stats_of(port)["by_step"].items() if stats["calls"]}
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
    for case_id in reasked:
        was, now = (each.verdict(case_id) for each in held)
        for cost in ("calls", "prompt_tokens", "completion_tokens"):
            assert was[cost] == now[cost], "the unreadable first reply counts, as it did"


def test_no_recorded_reply_speaks_for_two_agents(recorded: FinishedRun, tmp_path: Path) -> None:
    """Agents on one model ask the same; with more of them than were recorded the others are paid for."""
    cases, five = made_cases(EACH, "default"), make_protocol("selene", {"agents": 5})
    held = _run(tmp_path / "five", cases, recorded, five, key=key_of(cases))
    for labelled in cases:
        openings = {path: row for path, row in held.turns(labelled.case.id).items() if path.startswith("opening/")}
        assert [openings[f"opening/agent/{i}"]["reused_from"] is None for i in range(5)] == [False] * 3 + [True] * 2
        sources = [row["reused_from"] for row in held.turns(labelled.case.id).values() if row["reused_from"]]
        assert len(set(sources)) == len(sources) >= 3


def test_other_protocols_and_other_case_ids(recorded: FinishedRun, tmp_path: Path) -> None:
    """An equal fingerprint counts under any key; of equal ones the first by key."""
    first, *_ = made_cases(EACH, "default")
    twins = [LabelledCase(msgspec.structs.replace(first.case, id=f"twin-{i}"), i, first.gold) for i in range(2)]
    held = _run(tmp_path / "one", twins, recorded, make_protocol("single-agent"))
    for twin in twins:
        (turn,) = held.turns(twin.case.id).values()
        assert turn["reused_from"] == f"first:{first.case.id}/0/opening/agent/0"
        assert turn["text"] == recorded.turns(first.case.id)["opening/agent/0"]["text"]
        assert turn["p_normalised"] is not None
    assert held.counts.paid.calls == 0
