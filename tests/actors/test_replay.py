"""`replay/RUN` gives a recorded run again, exactly, and ends a case as soon as anything differs."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from houses import QUICK, Held, assert_equal_records, hold, same_for_all
from many_settings import SETTINGS, ManySettings, key_of, made_cases
from openai_server import ScriptedServer, simulated_server
from short_protocols import PICTURE, TEMPLATES

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.interface import ModelError
from moot.actors.models.replay import ReplayModel
from moot.actors.models.retry import call_with_retries
from moot.actors.roles import RoleBinding
from moot.protocols.case import LabelledCase
from moot.protocols.messages import Decoding, Message
from moot.protocols.registry import make_protocol
from moot.protocols.templates import Templates

SEED = 11
SHARED_PICTURE = "short_protocols:SharedPicture"
WITHOUT = ("model", "fingerprint")
EACH = 2
"""Cases of each setting."""
"""Columns that name the model: in a replay that is the run it comes from."""


def _cases() -> list[LabelledCase]:
    return [case for number, name in enumerate(SETTINGS) for case in made_cases(EACH, name, start=EACH * number)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Held:
    """Every configuration, on the simulated model."""
    cases, folder = _cases(), tmp_path_factory.mktemp("recorded") / "first"
    roles = same_for_all("simulated")
    return asyncio.run(hold("inline", folder, ManySettings(), cases, roles, seed=SEED, key=key_of(cases)))


def replayed(folder: Path, kind: str, recorded: Path, cases: list[LabelledCase], **changes: Any) -> Held:
    values: dict[str, Any] = {"seed": SEED, "roles": same_for_all(f"replay/{recorded}")} | changes
    return asyncio.run(hold(kind, folder, ManySettings(), cases, **values))


def test_a_replay_is_equal(recorded: Held, tmp_path: Path) -> None:
    _assert_replayed(recorded, tmp_path, "inline", _cases())


@pytest.mark.ray
@pytest.mark.slow
def test_a_replay_on_actors_is_equal(tmp_path: Path) -> None:
    cases = made_cases(3, "default") + made_cases(2, "majority-vote", start=3)
    roles = same_for_all("simulated")
    first = asyncio.run(hold("inline", tmp_path / "first", ManySettings(), cases, roles, seed=SEED, key=key_of(cases)))
    _assert_replayed(first, tmp_path, "actors", cases)


def _assert_replayed(recorded: Held, tmp_path: Path, kind: str, cases: list[LabelledCase]) -> None:
    again = replayed(tmp_path / "again", kind, recorded.folder, cases)
    assert_equal_records(recorded.folder, again.folder, without=WITHOUT)
    turns = again.rows("turns")
    assert {row["model"] for row in turns} == {"replay/first"}
    assert turns[0]["reused_from"] == f"first:{turns[0]['case_id']}/0/{turns[0]['path']}"
    assert (again.counts.replies, again.counts.tokens_paid) == (0, 0)
    assert again.counts.tokens_reused == recorded.counts.tokens_paid
    assert len(again.rows("tokens")) > len(again.rows("verdicts"))


def test_failures_and_repairs_come_again_without_a_server(tmp_path: Path) -> None:
    cases = made_cases(80, "default")
    with simulated_server(AnswerKey.from_cases(cases), seed=SEED, fail_rate=0.4, garble_rate=0.3) as port:
        roles = same_for_all(f"http://127.0.0.1:{port}/v1#simulated")
        first = asyncio.run(hold("inline", tmp_path / "first", ManySettings(), cases, roles, seed=SEED))
    again = replayed(tmp_path / "again", "inline", first.folder, cases)
    assert_equal_records(first.folder, again.folder, without=WITHOUT)
    outcomes = Counter(row["outcome"] for row in again.rows("turns"))
    assert min(outcomes[name] for name in ("ok", "repaired", "reasked", "invalid", "failed")) > 0, outcomes
    assert again.counts.replies == 0, "a failure that is replayed was not paid for either"


def test_pictures_and_shared_replies(tmp_path: Path) -> None:
    server = ScriptedServer(
        {
            "describe": lambda step, user: "a bird",
            "look": lambda step, user: {"answer": "Yes", "reasoning": "I looked.", "confidence": 0.5},
        }
    )
    held: list[Held] = []
    cases = made_cases(3, "any")
    try:
        for model in (server.model, f"replay/{tmp_path / '0'}"):
            roles = {name: [RoleBinding(model=model)] for name in ("vision", "agent")}
            folder = tmp_path / str(len(held))
            held.append(
                asyncio.run(
                    hold(
                        "inline",
                        folder,
                        make_protocol(SHARED_PICTURE),
                        cases,
                        roles,
                        templates=TEMPLATES,
                    )
                )
            )
    finally:
        server.close()
    # The id of what is shared is a hash with the fingerprint in it.
    assert_equal_records(held[0].folder, held[1].folder, without=(*WITHOUT, "case_id"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("prompt", "message 1 (system) differs from character 0: was 'Read the"),
        ("temperature", "`temperature` was 0.3, is 0.9"),
        ("case", "holds no reply to this step"),
        ("seed", "message 2 (user) differs from character "),
    ],
)
def test_whatever_differs_ends_the_case(change: str, said: str, recorded: Held, tmp_path: Path) -> None:
    changes: dict[str, Any] = {}
    cases = made_cases(EACH, "always-debate", start=EACH * list(SETTINGS).index("always-debate"))
    if change == "prompt":
        opening = Templates().sources["selene/opening"]
        changes["templates"] = {"selene/opening": opening.replace("{% block system %}", "{% block system %}Now, ")}
    if change == "temperature":
        changes["roles"] = same_for_all(f"replay/{recorded.folder}", temperature=0.9)
    if change == "case":
        cases = made_cases(EACH, "always-debate", start=300)
    if change == "seed":
        changes["seed"] = SEED + 1
    again = replayed(tmp_path / "again", "inline", recorded.folder, cases, **changes)
    verdicts = again.rows("verdicts")
    failed = [row for row in verdicts if row["failed"]]
    assert len(failed) == len(verdicts) if change != "seed" else failed
    for row in failed:
        assert row["failure"] == "replay_diverged"
        assert said in row["error"]
        assert row["error"].startswith(f"{row['case_id']}/0/")
        assert "\n" not in row["error"]
    assert again.counts.replies == 0


async def test_log_probabilities_that_were_not_kept(recorded: Held, tmp_path: Path) -> None:
    """A gate that was fed by them would see nothing, and decide otherwise: that is a difference, too."""
    cases = made_cases(2, "default")
    held = await hold(
        "inline",
        tmp_path / "first",
        ManySettings(),
        cases,
        same_for_all("simulated"),
        seed=SEED,
        save_tokens="chosen",
    )
    again = await hold(
        "inline", tmp_path / "again", ManySettings(), cases, same_for_all(f"replay/{held.folder}"), seed=SEED
    )
    assert {row["failure"] for row in again.rows("verdicts")} == {"replay_diverged"}
    assert all("its log-probabilities were not kept (--save-tokens)" in r["error"] for r in again.rows("verdicts"))


async def test_one_reply_with_its_tokens(recorded: Held) -> None:
    model = ReplayModel(recorded.folder)
    await model.check()
    row = recorded.turns("default-0")["opening/agent/1"]
    (tokens,) = (
        each for each in recorded.rows("tokens") if (each["case_id"], each["path"]) == ("default-0", "opening/agent/1")
    )
    messages = _messages(row)
    wanted = Decoding(temperature=0.3, top_p=0.9, max_tokens=400, top_logprobs=5)
    reply = await model.complete(messages, wanted, step_key="default-0/0/opening/agent/1")
    assert (reply.text, reply.finish_reason) == (row["text"], "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (row["prompt_tokens"], len(tokens["token"]))
    assert reply.tokens is not None
    assert reply.tokens.tokens == tokens["token"]
    assert reply.tokens.alt_logprob.shape == (len(tokens["token"]), 5)
    np.testing.assert_array_equal(reply.tokens.alt_logprob.ravel(), np.array(tokens["alt_logprob"], np.float32))
    assert reply.replayed is not None
    assert reply.replayed.logprob_stage == "before"
    plain = await model.complete(
        messages, Decoding(temperature=0.3, top_p=0.9, max_tokens=400), step_key="default-0/0/opening/agent/1"
    )
    assert plain.tokens is None
    seen = (*messages[:-1], Message("user", messages[-1].content, (PICTURE,)))
    with pytest.raises(ModelError, match="other pictures"):
        await model.complete(seen, wanted, step_key="default-0/0/opening/agent/1")
    with pytest.raises(ModelError, match="2 messages were sent, now 1"):
        await model.complete(messages[:1], wanted, step_key="default-0/0/opening/agent/1")


def _messages(row: dict[str, Any]) -> list[Message]:
    return [Message(role, content) for role, content in json.loads(row["messages"])]


async def test_a_recorded_failure_is_not_tried_again(tmp_path: Path) -> None:
    server = ScriptedServer({"describe": lambda step, user: "a bird"}, failing="look")
    try:
        roles = {name: [RoleBinding(model=server.model)] for name in ("vision", "agent")}
        held = await hold(
            "inline",
            tmp_path / "run",
            make_protocol(SHARED_PICTURE),
            made_cases(1, "any"),
            roles,
            templates=TEMPLATES,
        )
    finally:
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
