"""What kappa did over a run: found when it is there, not when it is not, and never claimed beyond what was seen."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.deploy.cli.main import main
from moot.deploy.reading.rounds.dial import MEASURES, DialEffect, dial_effect
from moot.deploy.reading.rounds.dial_show import show_dial
from moot.deploy.reading.simulated import SIMULATED
from moot.protocols.errors import ConfigError

KAPPAS = (0.9, 0.5, 0.1)


def _plant(session: Any, cases: int, effect: float, *, kappas: Callable[[int], tuple[float, ...]]) -> None:
    """Debates whose agreement language falls by `effect` from kappa 0 to 1; entropy and JSD do not follow kappa.

    Each case has a level of its own, as hard and easy cases do.
    """
    drawn = random.Random(7)
    for i in range(cases):
        session.case(f"c{i:02}")
        own = drawn.random() * 0.3
        for n, kappa in enumerate(kappas(i)):
            data: dict[str, Any] = {"round": n, "kappa": kappa, "jsd": 0.2 + drawn.gauss(0.0, 0.02)}
            data["entropy"] = {"agent/0": 9.0, "agent/1": 1.0 + own + drawn.gauss(0.0, 0.02)}
            data["agreement_words"] = 0.6 + own - effect * kappa + drawn.gauss(0.0, 0.02)
            session.event(f"c{i:02}", "round", f"round/{n}", data)
        session.event(f"c{i:02}", "contentiousness", "round/0", {"before": 0.9, "after": 0.5, "schedule": "linear"})


@pytest.fixture
def reacting(planted: Callable[..., Path], session: Any) -> Path:
    _plant(session, 30, 0.4, kappas=lambda i: KAPPAS)
    return planted(session, simulated=True)


def test_an_effect_is_found_in_the_measure_that_has_it_and_in_no_other(reacting: Path) -> None:
    found = dial_effect(reacting)
    assert [level.kappa for level in found.levels] == [0.1, 0.5, 0.9]
    assert [level.rounds for level in found.levels] == [30, 30, 30]
    words = found.slopes["agreement_words"]
    assert words.per_kappa == pytest.approx(-0.4, abs=0.02)
    assert words.moves
    assert (found.slopes["entropy"].moves, found.slopes["jsd"].moves) == (False, False)
    assert found.slopes["entropy"].per_kappa == pytest.approx(0.0, abs=0.02)
    assert found.moves
    low, high = (found.levels[i].measured["agreement_words"] for i in (0, 2))
    assert low.mean is not None
    assert high.mean is not None
    assert low.mean - high.mean == pytest.approx(0.32, abs=0.02)
    assert high.high is not None
    assert low.low is not None
    assert high.high < low.low
    assert found.schedules == ["linear"]


def test_no_effect_is_not_found(planted: Callable[..., Path], session: Any, printed: Callable[..., str]) -> None:
    _plant(session, 30, 0.0, kappas=lambda i: KAPPAS)
    found = dial_effect(planted(session))
    assert found.moves is False
    text = " ".join(printed(show_dial, found, width=200).split())
    assert "No reaction to the dial can be seen" in text
    assert SIMULATED not in text


def test_cases_are_compared_with_themselves(planted: Callable[..., Path], session: Any) -> None:
    """Hard cases stay at a high kappa and agree less: an effect between cases, and none within them."""
    for i in range(20):
        session.case(f"c{i}")
        hard = i % 2 == 0
        for n, kappa in enumerate((0.9, 0.8) if hard else (0.2, 0.1)):
            noise = 0.01 * ((i // 2 + n) % 2)
            data = {"round": n, "kappa": kappa, "agreement_words": (0.1 if hard else 0.9) + noise}
            session.event(f"c{i}", "round", f"round/{n}", data)
    found = dial_effect(planted(session))
    assert found.slopes["agreement_words"].per_kappa == pytest.approx(0.0, abs=0.11)
    assert found.moves is False
    assert found.slopes.keys() == found.levels[0].measured.keys() == {"agreement_words"}, (
        "what no round holds is left out"
    )


def test_few_cases_have_means_and_no_intervals(
    planted: Callable[..., Path], session: Any, printed: Callable[..., str]
) -> None:
    _plant(session, 9, 0.4, kappas=lambda i: KAPPAS)
    found = dial_effect(planted(session))
    assert found.moves is None
    assert found.levels[0].measured["jsd"].mean is not None
    assert found.levels[0].measured["jsd"].low is None
    assert "react to the dial is unknown" in " ".join(printed(show_dial, found, width=200).split())


def test_a_fixed_kappa_has_no_slope(planted: Callable[..., Path], session: Any) -> None:
    _plant(session, 12, 0.4, kappas=lambda i: (0.9, 0.9))
    found = dial_effect(planted(session))
    assert [level.kappa for level in found.levels] == [0.9]
    assert found.moves is None
    assert found.slopes["jsd"].cases == 0


def test_many_levels_are_binned_to_tenths(planted: Callable[..., Path], session: Any) -> None:
    _plant(session, 12, 0.4, kappas=lambda i: (0.9, 0.3 + i / 50, 0.1))
    found = dial_effect(planted(session))
    assert found.binned
    assert [level.kappa for level in found.levels] == [0.1, 0.3, 0.4, 0.5, 0.9]
    assert sum(level.rounds for level in found.levels) == 36


def test_what_cannot_be_told_apart_is_said(
    reacting: Path, planted: Callable[..., Path], session: Any, printed: Callable[..., str]
) -> None:
    text = " ".join(printed(show_dial, dial_effect(reacting), width=200).split())
    assert text.startswith(SIMULATED)
    assert "Within cases, the debates change with kappa: agreement language -0." in text
    assert "each round has one kappa in all cases" in text
    assert "only runs that differ in their schedule (the cells of an ablation)" in text
    session.cases.clear()
    session.events.clear()
    _plant(session, 12, 0.4, kappas=lambda i: KAPPAS if i % 2 else KAPPAS[::-1])
    mixed = dial_effect(planted(session))
    assert not mixed.one_kappa_per_round
    assert "Rounds and kappa are confounded" in " ".join(printed(show_dial, mixed, width=200).split())


def test_all_formats_say_the_same(reacting: Path, printed: Callable[..., str]) -> None:
    found = dial_effect(reacting)
    shown = printed(show_dial, found, "json")
    assert DialEffect.model_validate_json(shown) == found
    assert json.loads(shown)["levels"][0]["measured"].keys() == MEASURES.keys()
    markdown = printed(show_dial, found, "md", width=200)
    assert f"**{SIMULATED}**" in markdown
    assert re.search(r"\| entropy of agent/1, nat \| 0\.1 \| 1\.\d+ \| 1\.\d+ to 1\.\d+ \| 30 \|", markdown)
    assert re.search(r"\|  \| slope \| -0\.\d+ \| -0\.\d+ to -0\.\d+ \| 30 \|", markdown)


def test_only_the_latest_attempt_counts(planted: Callable[..., Path], session: Any) -> None:
    session.case("c1")
    session.event("c1", "round", "round/0", {"round": 0, "kappa": 0.9, "jsd": 0.6})
    session.event("c1", "round", "round/0", {"round": 0, "kappa": 0.9, "jsd": 0.2}, attempt=1)
    assert dial_effect(planted(session)).levels[0].measured["jsd"].mean == 0.2


def test_rounds_with_nothing_to_measure_are_refused(planted: Callable[..., Path], session: Any) -> None:
    session.case("c1")
    session.event("c1", "round", "round/0", {"round": 0, "kappa": 0.9, "entropy": None, "jsd": "high"})
    with pytest.raises(ConfigError, match="hold no distributions that it could have changed"):
        dial_effect(planted(session))


def test_a_run_without_a_dial_is_refused(
    inline_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = inline_run("selene")
    with pytest.raises(ConfigError, match="no round states a kappa"):
        dial_effect(run)
    for flags, said in (
        (["--dial"], "no round states a kappa"),
        (["--dial", "--questioned"], "--dial is of a whole run: it does not go with --questioned"),
        (["sample-001", "--dial"], "it does not go with a case"),
    ):
        monkeypatch.setattr(sys, "argv", ["moot", "show", str(run), *flags])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
