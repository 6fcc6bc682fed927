"""What a session reads of its record, it reads in threads: in a bucket run the lease's heartbeat is on its loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moot.actors.record.tables import read_table
from moot.deploy.running.config import RunConfig
from moot.deploy.running.prepare import prepare
from moot.deploy.running.session import Session


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("stopped", [False, True])
async def test_the_record_is_never_read_on_the_event_loop(
    stopped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[bool] = []

    def watched(*args: Any, **options: Any) -> Any:
        reads.append(_on_a_loop())
        return read_table(*args, **options)

    monkeypatch.setattr("moot.deploy.running.session.read_table", watched)
    config = RunConfig(task="sample", limit=3, engine="inline", out=str(tmp_path / "run"))
    assert (await Session(prepare(config)).hold()).done == 3
    more = Session(prepare(config.model_copy(update={"limit": 5})))
    if stopped:
        more.stop()
    assert (await more.hold()).done == (3 if stopped else 5)
    assert len(reads) > 4
    assert not any(reads)
