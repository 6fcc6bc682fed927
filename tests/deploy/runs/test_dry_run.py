"""A dry run: what a run would ask, counted on the real floor with stub replies; nobody is asked and nothing written."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from moot.deploy.runs.dry_run import estimate_calls, plan
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.case import Case
from moot.protocols.errors import ConfigError
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Verdict
from moot.protocols.replies import Position


def _counted(protocol: str, task: str = "sample", judges: int = 1, **settings: Any) -> tuple[int, int]:
    roles = {"judge": [{"model": "simulated"}] * judges} if judges > 1 else {}
    config = {"protocol": protocol, "task": task, "engine": "inline", "set": settings, "roles": roles}
    prepared = prepare(RunConfig.build(None, config))
    ((few, many),) = estimate_calls(prepared, [each.case for each in islice(prepared.cases(), 1)])
    assert few.tokens < many.tokens
    return few.calls, many.calls


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"protocol": "single-agent"}, (1, 1)),
        ({"protocol": "majority-vote"}, (9, 9)),
        # Three answers and a judge; or three rounds of three and a judge on two candidates in three variants.
        ({"protocol": "selene"}, (4, 18)),
        ({"protocol": "selene", "gate.when": "always"}, (7, 18)),
        ({"protocol": "selene", "judges": 2, "gate.when": "never"}, (5, 15)),
        ({"protocol": "selene", "both_branches": True}, (8, 19)),
        # Two sides in the opening and one round, each read by a judge; or three rounds, and two follow-ups.
        ({"protocol": "evince"}, (8, 18)),
        ({"protocol": "evince", "agents": 1}, (1, 1)),
        ({"protocol": "constructor-auditor", "judges": 3, "judge.passes": 2}, (15, 15)),
        ({"protocol": "ceda", "task": "sample-claims"}, (3, 6)),
        ({"protocol": "judge-panel", "task": "sample-replies", "judges": 4}, (4, 4)),
    ],
    ids=str,
)
def test_the_fewest_and_the_most_calls(given: dict[str, Any], wanted: tuple[int, int]) -> None:
    assert _counted(**given) == wanted


def test_a_long_protocol_has_many_more_calls_where_nobody_agrees() -> None:
    few, many = _counted("socrasynth", "sample-subjects")
    assert few == 22
    assert many > 30


class _Own:
    """Asks once, and a second time where the first two did not agree."""

    name, roles, needs_logprobs = "own", ("agent",), False

    async def run(self, case: Case, floor: Floor) -> Verdict:
        slots = {"question": case.question, "labels": case.labels, "choices": (), "passage": "", "title": ""}
        asks = [Request(f"agent/{n}", "selene/opening", slots, Position, f"first/agent/{n}") for n in (0, 1)]
        said = await floor.ask_all(asks)
        if len({getattr(turn, "answer", None) for turn in said}) > 1:
            await floor.ask("agent/0", "selene/opening", slots, reply=Position, path="second")
        return Verdict(answer=None, how="asked")


def test_a_protocol_of_ones_own_is_counted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("counted_protocol")
    module.__dict__["Own"] = _Own
    monkeypatch.setitem(sys.modules, "counted_protocol", module)
    config = RunConfig(protocol="counted_protocol:Own", engine="inline", out=str(tmp_path / "run"))
    found = plan(prepare(config))
    assert (found.cases, found.least, found.most) == (72, 144, 216)
    assert f"estimated from {found.sampled} of the cases" in "\n".join(found.lines())
    assert not (tmp_path / "run").exists()


class _Broken(_Own):
    """Takes for granted what no stub reply holds."""

    async def run(self, case: Case, floor: Floor) -> Verdict:
        raise LookupError("no such passage")


def test_what_cannot_be_run_on_stub_replies_is_unknown_and_not_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("broken_protocol")
    module.__dict__["Broken"] = _Broken
    monkeypatch.setitem(sys.modules, "broken_protocol", module)
    found = plan(prepare(RunConfig(protocol="broken_protocol:Broken", engine="inline", out=str(tmp_path / "run"))))
    assert (found.least, found.most, found.least_tokens, found.most_tokens) == (None, None, None, None)
    assert "calls     unknown" in "\n".join(found.lines())


TYPO = "{% block system %}{{ sentences }}{% endblock %}{% block user %}{{ qestion | fenced('question') }}{% endblock %}"


class _Mistyped(_Own):
    """Its second prompt, which only a disagreement needs, names a slot that the ask does not give."""

    templates: ClassVar = {"own/second": TYPO}

    async def run(self, case: Case, floor: Floor) -> Verdict:
        slots = {"question": case.question, "labels": case.labels, "choices": (), "passage": "", "title": ""}
        asks = [Request(f"agent/{n}", "selene/opening", slots, Position, f"first/agent/{n}") for n in (0, 1)]
        said = await floor.ask_all(asks)
        if len({getattr(turn, "answer", None) for turn in said}) > 1:
            await floor.ask("agent/0", "own/second", slots | {"sentences": 3}, reply=Position, path="second")
        return Verdict(answer=None, how="asked")


def test_a_mistyped_slot_of_an_own_template_is_found_before_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(ConfigError, match="'own/second': unknown slot 'qestion': did you mean 'question'"):
        run(protocol=_Mistyped(), engine="inline", out=folder)
    assert not folder.exists()


class _Slotless(_Own):
    """Asks with a template of the package and gives no slot."""

    async def run(self, case: Case, floor: Floor) -> Verdict:
        await floor.ask("agent/0", "selene/opening", {}, reply=Position, path="only")
        return Verdict(answer=None, how="asked")


def test_what_could_not_be_sent_is_no_call(tmp_path: Path) -> None:
    done = run(protocol=_Slotless(), engine="inline", out=tmp_path / "run", limit=1)
    assert (done.failed, done.summary.asks_failed) == (1, {"unsent": 1})
    assert (done.summary.calls, done.summary.calls_without_usage, done.summary.tokens_paid) == (0, 0, 0)
    (verdict,) = done.table("verdicts").to_pylist()
    assert (verdict["calls"], verdict["calls_without_usage"]) == (0, 0)
