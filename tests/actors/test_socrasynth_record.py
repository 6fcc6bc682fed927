"""SocraSynth parked, steered, killed and resumed, without paying twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from houses import Held, hold, same_for_all, stable_rows
from many_settings import made_cases

from moot.actors.roles import RoleBinding
from moot.deploy.running.decide import decide
from moot.deploy.running.run import run
from moot.protocols.case import LabelledCase
from moot.protocols.errors import ConfigError
from moot.protocols.registry import make_protocol

SETTINGS: Mapping[str, Any] = {"versus_qa": True, "crit_topics": True, "topics.count": 3, "max_rounds": 3}
CASES = 4
TABLES = ("cases", "turns", "tokens", "judgments", "events", "embeddings")


def _roles(judges: int = 2) -> dict[str, list[RoleBinding]]:
    (binding,) = same_for_all("simulated")["judge"]
    whole = binding.model_copy(update={"max_tokens": 2000})
    return {"agent": [whole], "moderator": [whole], "judge": [whole] * judges}


def _held(kind: str, folder: Path, cases: list[LabelledCase], **changes: Any) -> Held:
    return asyncio.run(hold(kind, folder, make_protocol("socrasynth", SETTINGS), cases, _roles(), seed=6, **changes))


def test_a_person_is_waited_for_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    """Parked at every form and answered `go on`, the debate ends as one without a person does."""
    cases = made_cases(1, "subject")
    alone = _held("inline", tmp_path / "alone", cases)
    folder = tmp_path / "attended"
    forms = 0
    while (held := _held("inline", folder, cases, attended=True)).parked:
        decide(folder, "subject-0", "go on")
        forms += 1
    assert forms >= 3

    def said(one: Held) -> dict[str, str]:
        return {path: row["text"] for path, row in one.turns("subject-0").items() if row["role"] != "person"}

    assert said(held) == said(alone)
    asked = Counter(row["path"] for row in held.rows("events") if row["kind"] == "asked")
    assert set(asked.values()) == {1}
    assert held.verdict("subject-0")["payload"] == alone.verdict("subject-0")["payload"]


def test_a_person_steers_an_attended_run(tmp_path: Path) -> None:
    cases, folder = made_cases(1, "subject"), tmp_path / "steered"
    answers = [("edit", "Nests: where"), ("go on", ""), ("set kappa", "much"), ("set kappa", "0.4"), ("end", "")]
    for action, text in answers:
        assert _held("inline", folder, cases, attended=True).parked == ["subject-0"]
        decide(folder, "subject-0", action, text)
    held = _held("inline", folder, cases, attended=True)
    verdict = held.verdict("subject-0")
    assert (verdict["how"], verdict["rounds"], verdict["payload"]["topics"]) == ("ended-by-person", 0, ["Nests"])
    outcomes = [json.loads(row["data"])["outcome"] for row in held.events("subject-0", "moderation")]
    assert len(outcomes) == 4
    assert sum(outcome.startswith("Not used") for outcome in outcomes) == 1


def test_what_says_nothing_without_a_text_is_not_decided_without_one(tmp_path: Path) -> None:
    cases, folder = made_cases(1, "subject"), tmp_path / "run"
    _held("inline", folder, cases, attended=True)
    with pytest.raises(ConfigError, match="'edit' needs a text"):
        decide(folder, "subject-0", "edit")
    decide(folder, "subject-0", "go on")
    _held("inline", folder, cases, attended=True)
    for action in ("set kappa", "ask", "edit topics"):
        with pytest.raises(ConfigError, match=f"'{action}' needs a text"):
            decide(folder, "subject-0", action)


@pytest.mark.slow
@pytest.mark.smoke
def test_a_killed_run_goes_on_to_the_same_record(tmp_path: Path) -> None:
    settings = {"topics.count": 2, "max_rounds": 2}
    command = [sys.executable, "-m", "moot", "run", "--engine", "inline", "--quiet", "--protocol", "socrasynth"]
    command += ["--limit", "3", "--out", str(tmp_path / "killed")]
    command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    marks = tmp_path / "marks"
    marks.mkdir()
    plan = {"MOOT_FAILPOINTS": "agent.received:30,judge.received:20", "MOOT_FAILPOINT_DIR": str(marks)}
    starts = [
        subprocess.run(command, env=os.environ | plan, capture_output=True, timeout=120, check=False) for _ in range(3)
    ]
    assert [start.returncode for start in starts] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    run(engine="inline", protocol="socrasynth", limit=3, set=settings, out=tmp_path / "whole")
    for table in ("turns", "verdicts"):
        assert stable_rows(tmp_path / "killed", table) == stable_rows(tmp_path / "whole", table), table
