"""How a run holds replies to schemas: decided once, kept in its record, and the same when it is resumed or reused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from openai_server import ScriptedServer

from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.trial import STEP_KEY
from moot.actors.sent_request import fingerprint_of_role
from moot.deploy.running.run import arun

CASES = [{"id": f"c{n}", "question": f"Is it {n}?", "labels": ["Yes", "No"], "passage": "It is."} for n in range(3)]


async def hold(out: Path, server: ScriptedServer, limit: int, **options: Any) -> Any:
    fields: dict[str, Any] = {"task": CASES, "protocol": "single-agent", "model": server.model, **options}
    return await arun(limit=limit, engine="inline", out=out, **fields)


def asked(server: ScriptedServer) -> dict[str, Any]:
    """What replies were to be held to, by step; the trial aside."""
    bodies = {step: json.loads(body) for step, body in server.bodies.items() if step != STEP_KEY}
    return {step: body.get("response_format") for step, body in bodies.items()}


def agent_of(out: Path) -> dict[str, Any]:
    """What run.yaml says of the one agent."""
    (member,) = yaml.safe_load((out / "run.yaml").read_text())["bindings"]["agent"]
    return dict(member)


def with_profile(out: Path, profile: dict[str, Any] | None) -> None:
    """Write the record as an older version did: with another profile, or with none."""
    recorded = yaml.safe_load((out / "run.yaml").read_text())
    (member,) = recorded["bindings"]["agent"]
    del member["profile"]
    member |= {} if profile is None else {"profile": profile}
    (out / "run.yaml").write_text(yaml.safe_dump(recorded))


async def no_profile(*given: object) -> None:
    """As in records from before there were any: replies are left free."""


async def test_what_is_found_is_recorded_and_used_again(tmp_path: Path, server: ScriptedServer) -> None:
    await hold(tmp_path / "run", server, 1)
    assert ModelProfile.model_validate(agent_of(tmp_path / "run")["profile"]) == ModelProfile(schemas="portable")
    (wanted,) = asked(server).values()
    assert wanted["json_schema"]["schema"]["properties"]["answer"]["enum"] == ["Yes", "No"]
    trials = server.calls[STEP_KEY]
    done = await hold(tmp_path / "run", server, 3)
    assert (done.status, server.calls[STEP_KEY]) == ("finished", trials)
    assert list(asked(server).values()) == [wanted] * 3


@pytest.mark.parametrize("masked", [True, False, None])
async def test_a_record_that_is_older_is_resumed_as_it_was_without_another_trial(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, masked: bool | None
) -> None:
    """One without any profile, and one that knew two stages of log-probabilities."""
    with monkeypatch.context() as patched:
        if masked is None:
            patched.setattr("moot.deploy.running.checks._probe", no_profile)
        await hold(tmp_path / "run", server, 2)
    older = ("schemas", "listed_labels", "server", "reasons", "folds_system", "bounds_completion", "api", "omitted")
    found = agent_of(tmp_path / "run")["profile"]
    known = None if masked is None else {name: found[name] for name in older} | {"masked_logprobs": masked}
    with_profile(tmp_path / "run", known)
    trials = server.calls[STEP_KEY]
    done = await hold(tmp_path / "run", server, 3)
    assert (done.status, server.calls[STEP_KEY]) == ("finished", trials)
    assert [wanted is None for wanted in asked(server).values()] == [masked is None] * 3
    assert all(calls == 1 for step, calls in server.calls.items() if step != STEP_KEY)


@pytest.mark.parametrize("structured", ["on", "off", "auto"])
async def test_all_roles_are_held_or_free_as_the_flag_says(
    tmp_path: Path, server: ScriptedServer, structured: str
) -> None:
    done = await hold(tmp_path / "run", server, 1, structured=structured, temperature=0.7, max_reply_tokens=77)
    (wanted,) = asked(server).values()
    assert (wanted is None) == (structured == "off")
    assert done.table("turns")["held"].to_pylist() == [structured != "off"]
    (body,) = [json.loads(body) for step, body in server.bodies.items() if step != STEP_KEY]
    assert (body["temperature"], body["max_tokens"]) == (0.7, 77)


@pytest.mark.parametrize("structured", ["on", "off"])
async def test_a_record_in_which_the_flag_itself_counted_is_resumed_and_reused(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, structured: str
) -> None:
    def replies() -> Counter[str]:
        return Counter({step: calls for step, calls in server.calls.items() if step != STEP_KEY})

    options: dict[str, Any] = {"structured": structured, "protocol": "majority-vote"}
    with monkeypatch.context() as patched:
        patched.setattr("moot.actors.house.fingerprint", fingerprint_of_role)
        stopped = await hold(tmp_path / "run", server, 2, **options, max_tokens=2000)
    assert stopped.status == "stopped"
    assert replies().total() % 9, "a debate was under way"
    await hold(tmp_path / "run", server, 2, **options)
    assert (replies().total(), set(replies().values())) == (18, {1})
    with monkeypatch.context() as patched:
        patched.setattr("moot.actors.house.fingerprint", fingerprint_of_role)
        await hold(tmp_path / "whole", server, 1, **options, seed=1)
    paid = replies().total()
    await hold(tmp_path / "reused", server, 1, **options, reuse=tmp_path / "whole")
    assert replies().total() == paid
