"""A run's debates round by round: means over those that held a round, and each one's own change from first to last."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import moot
from moot.deploy.cli.main import app
from moot.deploy.reading.rounds.dynamics import dynamics


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.reading.rounds.over_cases._RESAMPLES", 400)


def _plant(session: Any, cases: int = 20) -> None:
    """Debates that begin with a JSD of 0.4 to 0.59: even ones end after round 1 at half of it, odd ones after round 2
    at a quarter. Kappa falls by 0.2 a round.
    """
    for i in range(cases):
        session.case(f"c{i:02}")
        first = 0.4 + i / 100
        for n in range(2 + i % 2):
            data = {"round": n, "kappa": 0.9 - 0.2 * n, "jsd": first / 2**n, "kl": {"agent/0>agent/1": 1.0}}
            data["crit"] = {"agent/0": 0.6 + 0.1 * n, "agent/1": 0.8 + 0.1 * n}
            session.event(f"c{i:02}", "round", f"round/{n}", data)


def test_means_are_of_the_debates_that_held_the_round(planted: Callable[..., Path], session: Any) -> None:
    _plant(session)
    found = dynamics(planted(session))
    assert [(each.round, each.cases) for each in found.rounds] == [(0, 20), (1, 20), (2, 10)]
    jsd = [each.measured["jsd"] for each in found.rounds]
    assert [each.mean for each in jsd] == pytest.approx([0.495, 0.2475, 0.125])
    assert jsd[0].low is not None
    assert jsd[0].high is not None
    assert 0.4 < jsd[0].low < 0.495 < jsd[0].high < 0.59
    assert [each.measured["crit"].mean for each in found.rounds] == pytest.approx([0.7, 0.8, 0.9])
    assert "kl" not in found.rounds[0].measured


def test_the_change_is_of_each_debates_own_rounds(planted: Callable[..., Path], session: Any) -> None:
    _plant(session)
    jsd, kappa = (dynamics(planted(session)).changes[key] for key in ("jsd", "kappa"))
    assert (jsd.first, jsd.last) == pytest.approx((0.495, (0.49 / 2 + 0.5 / 4) / 2))
    assert jsd.by_case.mean == pytest.approx(0.185 - 0.495)
    assert jsd.percent == pytest.approx(100.0 * (0.185 / 0.495 - 1.0))
    assert jsd.by_case.cases == 20
    assert kappa.by_case.mean == pytest.approx(-0.3)


def test_a_number_that_a_side_does_not_know_is_unknown_of_all(planted: Callable[..., Path], session: Any) -> None:
    session.case("c1")
    for n, other in enumerate((0.8, None, 0.6)):
        session.event("c1", "round", f"round/{n}", {"round": n, "crit": {"agent/0": 0.4, "agent/1": other}})
    found = dynamics(planted(session))
    assert [each.measured["crit"].mean for each in found.rounds] == [pytest.approx(0.6), None, pytest.approx(0.5)]
    change = found.changes["crit"]
    assert change.by_case.mean == pytest.approx(-0.1)
    assert (change.by_case.low, change.by_case.cases) == (None, 1)


def test_no_share_is_given_of_nothing(planted: Callable[..., Path], session: Any) -> None:
    session.case("c1")
    for n in (0, 1):
        session.event("c1", "round", f"round/{n}", {"round": n, "jsd": 0.1 * n})
    change = dynamics(planted(session)).changes["jsd"]
    assert (change.first, change.percent) == (0.0, None)


async def test_the_command_of_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await moot.arun(task="sample-symptoms", protocol="evince", engine="inline", out=run, limit=3)
    called = CliRunner().invoke(app, ["show", str(run), "--rounds", "--format", "json"])
    assert called.exit_code == 0
    shown = json.loads(called.stdout)
    assert shown["rounds"][0]["cases"] == 3
    assert {"kappa", "jsd", "wd", "entropy", "crit"} <= shown["changes"].keys()
    both = CliRunner().invoke(app, ["show", str(run), "--rounds", "--dial"])
    assert "--rounds is of a whole run: it does not go with --dial" in str(both.exception)
