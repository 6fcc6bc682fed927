"""What kappa did over a run: found when it is there, not when it is not, and never claimed beyond what was seen."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from planted_records import Printed, Session

import moot
from moot.deploy.cli.main import main
from moot.deploy.reading.report.render import show_report
from moot.deploy.reading.rounds.dial import dial_blocks, dial_effect
from moot.protocols.errors import ConfigError

LEVELS = (0.1, 0.5, 0.9)


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.deploy.reading.rounds.over_cases._RESAMPLES", 400)


def _plant(session: Session, cases: int, effect: float, *, schedule: str = "random", trend: float = 0.2) -> None:
    """Debates of three rounds whose agreement language falls by `effect` from kappa 0 to 1, and rises by `trend` from
    round to round whatever kappa is, as do entropy and JSD.

    Kappa is drawn at random; with another schedule it falls with the rounds.
    """
    drawn = random.Random(7)
    for i in range(cases):
        session.case(f"c{i:02}")
        own = drawn.random() * 0.1
        session.event(f"c{i:02}", "round", "round/0", {"round": 0, "kappa": 0.9, "jsd": 9.0, "agreement_words": 9.0})
        for n in (1, 2, 3):
            kappa = drawn.choice(LEVELS) if schedule == "random" else LEVELS[-n]
            data: dict[str, Any] = {"round": n, "kappa": kappa, "jsd": 0.2 + trend * n + drawn.gauss(0.0, 0.02)}
            data["entropy"] = {"agent/0": 9.0, "agent/1": 1.0 + own + trend * n + drawn.gauss(0.0, 0.02)}
            data["agreement_words"] = own + trend * n - effect * kappa + drawn.gauss(0.0, 0.02)
            session.event(f"c{i:02}", "round", f"round/{n}", data)
        session.event(f"c{i:02}", "contentiousness", "round/0", {"before": 0.9, "after": 0.5, "schedule": schedule})


@pytest.fixture
def reacting(session: Session) -> Path:
    _plant(session, 40, 0.4)
    session.reply("c0", "opening/agent/0", 1)
    return session.plant(simulated=True)


def test_an_effect_is_found_in_the_measure_that_has_it_and_in_no_other(reacting: Path) -> None:
    found = dial_effect(reacting)
    assert [level.kappa for level in found.levels] == [0.1, 0.5, 0.9]
    assert sum(level.rounds for level in found.levels) == 120, "the opening exchange is left out"
    words = found.slopes["agreement_words"]
    assert words.per_kappa == pytest.approx(-0.4, abs=0.03)
    assert words.moves
    assert (found.slopes["entropy"].moves, found.slopes["jsd"].moves) == (False, False)
    assert found.slopes["entropy"].per_kappa == pytest.approx(0.0, abs=0.03)
    assert found.moves
    assert found.randomised
    assert found.schedules == ["random"]


def test_no_effect_is_not_found_though_debates_change_with_the_rounds(session: Session, printed: Printed) -> None:
    _plant(session, 40, 0.0)
    found = dial_effect(session.plant())
    assert found.moves is False


def test_where_kappa_follows_the_rounds_nothing_is_claimed(session: Session, printed: Printed) -> None:
    _plant(session, 40, 0.4, schedule="linear")
    found = dial_effect(session.plant())
    assert (found.moves, found.slopes, found.randomised) == (None, {}, False)
    assert found.levels[0].measured["agreement_words"].mean is not None
    assert "cannot be told from this run" in printed(show_report, found, lambda: dial_blocks(found), width=200)


@pytest.mark.parametrize(("effect", "reacts"), [(0.0, False), (1.0, True)])
async def test_the_simulated_model_reacts_as_much_as_it_is_told(effect: float, reacts: bool, tmp_path: Path) -> None:
    labels = ["flu", "cold", "mumps", "zika"]
    cases = [{"question": f"What is complaint {i}, with fever {i}?", "labels": labels} for i in range(30)]
    await moot.arun(
        task=cases,
        protocol="evince",
        model=f"simulated?contentiousness_effect={effect}",
        engine="inline",
        out=tmp_path / "run",
        seed=1,  # the test is one at 95 %: of 76 seeds it finds in about one of ten what is not there
        set={"schedule": "random", "epsilon": 0.0, "follow_ups": "never", "gate": False, "crit_turns": "none"},
    )
    found = dial_effect(tmp_path / "run")
    assert found.moves is reacts
    if reacts:
        assert found.slopes["agreement_words"].moves
        assert (found.slopes["agreement_words"].per_kappa or 0.0) < 0.0


def test_what_a_side_said_that_failed_to_speak_does_not_count(session: Session) -> None:
    session.case("c1")
    heard = {"entropy": {"agent/1": 1.0}, "jsd": 0.2, "kappa": 0.5}
    session.event("c1", "round", "round/1", {**heard, "round": 1})
    stale = {**heard, "entropy": {"agent/1": 9.0}, "jsd": 9.0, "round": 2, "failed": ["round/2/agent/1"]}
    session.event("c1", "round", "round/2", stale)
    measured = dial_effect(session.plant()).levels[0].measured
    assert (measured["entropy"].mean, measured["jsd"].mean) == (1.0, 0.2)


@pytest.mark.parametrize(
    ("order", "entropy"), [(["agent/1", "agent/0"], 2.0), (["agent/0", "agent/1"], 1.0), (None, 1.0)]
)
def test_the_side_that_answers_is_the_second_to_speak(
    session: Session, order: list[str] | None, entropy: float
) -> None:
    session.case("c1")
    data = {"round": 1, "kappa": 0.5, "entropy": {"agent/0": 2.0, "agent/1": 1.0}}
    session.event("c1", "round", "round/1", data | ({} if order is None else {"order": order}))
    assert dial_effect(session.plant()).levels[0].measured["entropy"].mean == entropy


def test_few_cases_have_means_and_no_intervals(session: Session, printed: Printed) -> None:
    _plant(session, 9, 0.4)
    found = dial_effect(session.plant())
    assert found.moves is None
    assert found.levels[0].measured["jsd"].mean is not None
    assert found.levels[0].measured["jsd"].low is None
    assert "react to the dial is unknown" in " ".join(
        printed(show_report, found, lambda: dial_blocks(found), width=200).split()
    )


def test_many_levels_are_binned_to_tenths(session: Session) -> None:
    for i in range(24):
        session.case(f"c{i}")
        session.event(f"c{i}", "round", "round/1", {"round": 1, "kappa": 0.3 + i / 50, "jsd": 0.1})
    found = dial_effect(session.plant())
    assert found.binned
    assert [level.kappa for level in found.levels] == [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert sum(level.rounds for level in found.levels) == 24


def test_a_run_without_a_dial_is_refused(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session.case("c1")
    session.event("c1", "round", "round/1", {"round": 1, "d": 0.1})
    session.verdict("c1")
    run = session.plant()
    with pytest.raises(ConfigError, match="kappa"):
        dial_effect(run)
    for flags, said in (
        (["--dial"], "no round states a kappa"),
        (["--dial", "--questioned"], "--dial is of a whole run: it does not go with --questioned"),
        (["c1", "--dial"], "it does not go with a case"),
    ):
        monkeypatch.setattr(sys, "argv", ["moot", "show", str(run), *flags])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
