"""A run.yaml from before a setting or a role's key came is resumed with what runs did then."""

from __future__ import annotations

from typing import Any

import pytest
from oldest_records import SETTINGS, oldest

from moot.deploy.running.config import RunConfig
from moot.deploy.running.flags import parse_settings
from moot.deploy.running.prepare import prepare
from moot.deploy.running.resume import check_same, describe, differences
from moot.protocols.errors import RunMismatch

TASKS = {"ceda": "sample-claims", "judge-panel": "sample-replies"}
OF_SELENE = ["debate.show_confidence: was True, now False", "gate.require_complete: was False, now True"]
CHANGED = {
    "always-debate": OF_SELENE,
    "constructor-auditor": [
        "answer_first: was True, now False",
        "passages: was 0, now 3",
        "sections: was always, now by-domain",
    ],
    "majority-vote": OF_SELENE,
    "selene": OF_SELENE,
    "single-agent": OF_SELENE,
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
        check_same(old, now, "x")
    said = str(refused.value)
    assert said.index("ceda/debater") < said.index("seed: was 3, now 0")
