"""Records from before how a reply was read came: counted, gone on with, replayed, and nothing is paid for again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from oldest_records import oldest

import moot
from moot.deploy.reading.summaries.summary import summarise

NEW = ["reasoning_tokens", "reasoning", "reading"]
OPTIONS: dict[str, Any] = {
    "task": "sample",
    "protocol": "majority-vote",
    "engine": "inline",
    "limit": 3,
    "set": {"gate.require_complete": False, "debate.show_confidence": True},  # as runs did then
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A finished run whose files have not the new columns and keys."""
    out = tmp_path / "old"
    moot.run(**OPTIONS, out=out)
    _age(out)
    return out


def _age(out: Path) -> None:
    files = list((out / "turns").glob("*.parquet"))
    assert files
    for path in files:
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns(NEW), path)
    for file in (out / "parts").glob("*.json"):  # without checksums, as they were then
        part = json.loads(file.read_bytes().splitlines()[0])
        file.write_text(json.dumps({"tables": part["tables"], "covers": part["covers"]}))
    run_yaml = out / "run.yaml"
    run_yaml.write_text(yaml.safe_dump(oldest(yaml.safe_load(run_yaml.read_text())), sort_keys=False))


def test_it_is_counted(old: Path) -> None:
    (found,) = summarise(old).model_replies
    assert found.asks == found.usable == found.replies > 0
    assert (found.by_prefix, found.reasoning_tokens) == (0, None)


def test_it_is_gone_on_with_and_nothing_is_paid_again(old: Path) -> None:
    before = summarise(old)
    after = moot.run(**OPTIONS | {"limit": 4}, out=old).summary
    assert (after.finished, after.calls) == (4, before.calls * 4 // 3)


def test_debates_that_were_under_way_go_on(tmp_path: Path) -> None:
    out = tmp_path / "stopped"
    stopped = moot.run(**OPTIONS, out=out, max_tokens=4_000)
    assert stopped.status == "stopped"
    assert stopped.done < 3
    assert stopped.summary.calls > 0
    _age(out)
    done = moot.run(**OPTIONS, out=out)
    whole = moot.run(**OPTIONS, out=tmp_path / "whole").summary
    assert (done.status, done.summary.finished, done.summary.calls) == ("finished", 3, whole.calls)


def test_it_is_replayed_and_reused(old: Path, tmp_path: Path) -> None:
    again = moot.run(**OPTIONS, model=f"replay/{old}", out=tmp_path / "replayed").summary
    reused = moot.run(**OPTIONS, reuse=old, out=tmp_path / "reused").summary
    assert (again.finished, again.failed, again.calls) == (3, 0, 0)
    assert (reused.finished, reused.calls) == (3, 0)
