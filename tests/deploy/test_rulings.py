"""What the panels of a run over subjects have found, beside an accuracy that nobody can know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from moot.deploy.reading.show import show
from moot.deploy.reading.summaries.summary import summarise
from moot.deploy.running.run import run

BOTH = {"agent/0": True, "agent/1": True}


def ruled(winner: str | None, consents: Mapping[str, bool | None] | None, **bias: float | None) -> dict[str, Any]:
    joint = None if consents is None else {"proposal": ["x"], "consents": consents}
    return {"winner": winner, "position_bias": bias, "joint": joint, "topics": []}


def test_winners_order_effect_and_consents_are_counted(
    planted: Callable[..., Path], session: Any, printed: Callable[..., str]
) -> None:
    for place, payload in enumerate([
        ruled("For", BOTH, a=2.5, b=-0.5),
        ruled("Against", {**BOTH, "agent/1": False}, a=1.0, b=None),
        ruled("Against", {**BOTH, "agent/0": None}, a=1.0),
        ruled(None, None, a=None),
    ]):  # fmt: skip
        session.case(f"c{place}", gold=None)
        session.verdict(f"c{place}", payload["winner"], "plateau", payload=payload)
    session.case("failed", gold=None)
    session.verdict("failed", None, "failed", failure="quorum", error="none")
    folder = planted(session)
    found = summarise(folder).rulings
    assert found is not None
    assert found.winners == {"For": 1, "Against": 2, "Tie": 0, "none": 1}
    assert (found.first_mover_advantage, found.judgings) == (1.0, 4)
    assert found.joint == {"both consent": 1, "reservations": 1, "not known": 1, "no proposal": 1}
    shown = " ".join(printed(show, folder).split())
    assert "verdicts For 1, Against 2, Tie 0, none 1 worth of coming first +1 marks (n = 4)" in shown
    assert "joint proposals both consent 1, reservations 1, not known 1, no proposal 1" in shown


def test_only_the_latest_attempt_counts(planted: Callable[..., Path], session: Any) -> None:
    later = type(session)()
    for each in (session, later):
        each.case("c0", gold=None)
    session.verdict("c0", None, "failed", failure="quorum", payload=ruled("For", BOTH))
    later.verdict("c0", "Against", "plateau", attempt=1, payload=ruled("Against", BOTH))
    found = summarise(planted(session, later)).rulings
    assert found is not None
    assert found.winners == {"For": 0, "Against": 1, "Tie": 0, "none": 0}
    assert found.first_mover_advantage is None, "no judge in both orders: unknown, not 0"


def test_a_real_run_agrees_with_its_verdicts(tmp_path: Path) -> None:
    done = run(protocol="socrasynth", task="sample-subjects", engine="inline", limit=3, out=str(tmp_path / "run"))
    found = done.summary.rulings
    assert found is not None
    answers = done.table("verdicts").column("answer").to_pylist()
    assert {name: n for name, n in found.winners.items() if n} == {name: answers.count(name) for name in set(answers)}
    assert found.judgings == 3
