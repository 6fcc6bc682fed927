"""Records from before newer settings, roles' keys, columns and checksums: resumed with what runs did then, counted and
replayed, and nothing is paid for again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from oldest_records import SETTINGS, oldest

import moot
from moot.deploy.results.figures.summary import summarise
from moot.deploy.runs.flag_parsers import parse_settings
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.resume import check_configuration_unchanged, describe, differences
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import RunMismatch

TASKS = {"ceda": "sample-claims", "judge-panel": "sample-replies"}
OF_CRIT = ["crit.weak_below: was 1.0, now 0.5"]
OF_SELENE = ["debate.show_confidence: was True, now False", "gate.require_complete: was False, now True"]
CHANGED = {
    "always-debate": OF_SELENE,
    "constructor-auditor": [
        "answer_first: was True, now False",
        "passages: was 0, now 3",
        "sections: was always, now by-domain",
    ],
    "evince": OF_CRIT,
    "majority-vote": OF_SELENE,
    "selene": OF_SELENE,
    "single-agent": OF_SELENE,
    "socrasynth": OF_CRIT,
}
"""Settings newer than the oldest records whose default is not what runs did before them."""


def described(protocol: str, **given: Any) -> dict[str, Any]:
    """The body of run.yaml."""
    fields = {"protocol": protocol, "task": TASKS.get(protocol, "sample"), "out": "unmade"}
    return describe(prepare(RunConfig.build(None, {**fields, **given})))


@pytest.mark.parametrize("protocol", SETTINGS)
def test_the_oldest_record_is_resumed_when_its_refusal_is_followed(protocol: str) -> None:
    old = oldest(described(protocol))
    found = list(differences(old, described(protocol)))
    assert found == CHANGED.get(protocol, [])
    as_it_was = parse_settings(line.partition(", now")[0].replace(": was ", "=") for line in found)
    assert list(differences(old, described(protocol, set=as_it_was))) == []


@pytest.mark.parametrize(
    ("protocol", "given", "said"),
    [
        ("evince", {"set": {"order": "seeded"}}, "order: was given, now seeded"),
        ("evince", {"set": {"crit.rivals": "capped"}}, "crit.rivals: was printed, now capped"),
        ("ceda", {"set": {"context.by": "model"}}, "context.by: was rules, now model"),
        ("socrasynth", {"set": {"panel": "whole"}}, "panel: was topics, now whole"),
        ("socrasynth", {"set": {"kappa.start": 0.5}}, "kappa.start: was 0.9, now 0.5"),
        ("evince", {"roles": {"judge": {"seed": 7}}}, "roles.judge.seed: was none, now 7"),
        ("evince", {"roles": {"judge": {"stop": "END"}}}, "roles.judge.stop: was [], now ['END']"),
        ("evince", {"roles": {"judge": {"extra": {"min_p": 1}}}}, "roles.judge.extra.min_p: was none, now 1"),
    ],
)
def test_what_is_now_done_otherwise_is_refused(protocol: str, given: dict[str, Any], said: str) -> None:
    assert said in list(differences(oldest(described(protocol)), described(protocol, **given)))


def test_changed_templates_come_first_and_hide_no_setting() -> None:
    now = described("selene")
    old = {**now, "seed": 3, "templates": dict.fromkeys(now["templates"], "00")}
    with pytest.raises(RunMismatch) as refused:
        check_configuration_unchanged(old, now, "x")
    said = str(refused.value)
    assert said.index("selene/joining") < said.index("seed: was 3, now 0") < said.index("--prompts x/prompts")


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


def test_it_is_resumed_and_nothing_is_paid_again(old: Path) -> None:
    before = summarise(old)
    after = moot.run(**OPTIONS | {"limit": 4}, out=old).summary
    assert (after.finished, after.calls) == (4, before.calls * 4 // 3)


def test_debates_in_flight_resume(tmp_path: Path) -> None:
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
