"""Labels to look at again: exactly the confident contradictions, and never more said than is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planted_records import Command, Session

from moot.deploy.reading.summaries.questioned import questioned
from moot.deploy.reading.summaries.summary import summarise

EVIL = "Is it [bold red]x[/] \x1b[2J | <script>?" + " and so on" * 20
PAYLOAD = {"distribution_from": "consensus", "crit_mean": 0.75}


@pytest.fixture
def run(session: Session) -> Path:
    def add(case_id: str, answer: str | None = "No", gold: str | None = "Yes", **verdict: Any) -> None:
        session.case(case_id, gold=gold, question=EVIL)
        fields: Any = {"how": "converged", "confidence": 0.9, "payload": PAYLOAD} | verdict
        session.verdict(case_id, answer, **fields)

    add("listed")
    add("surer", confidence=0.95)
    add("at-the-bounds", confidence=0.8, payload=PAYLOAD | {"crit_mean": 0.7})
    add("agrees", answer="Yes")
    add("unsure", confidence=0.79)
    add("badly-argued", payload=PAYLOAD | {"crit_mean": 0.69})
    add("stalled", how="stalled")
    add("no-label", gold=None)
    add("no-answer", answer=None, confidence=None)
    add("no-crit", payload=PAYLOAD | {"crit_mean": None})
    add("votes", payload={"distribution_from": "votes", "crit_mean": 0.9})
    add("failed", answer=None, how="failed", failure="quorum_failed")
    session.reply("listed", "opening/agent/0", 1)
    return session.plant(simulated=True)


def test_exactly_the_confident_contradictions_are_listed_the_surest_first(run: Path) -> None:
    found = questioned(run)
    assert [each.case_id for each in found.labels] == ["surer", "listed", "at-the-bounds"]
    assert (found.labels[0].gold, found.labels[0].consensus, found.labels[0].crit_mean) == ("Yes", "No", 0.75)
    assert found.unknown == 1
    assert summarise(run).labels_questioned == 3
    assert [each.case_id for each in questioned(run, confidence=0.0, crit=0.72).labels] == ["surer", "listed", "unsure"]
    assert not questioned(run, confidence=1.0).labels


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--crit", "0.5"], "--crit goes with --questioned only"),
        (["listed", "--questioned"], "--questioned is of a whole run: it does not go with a case"),
        (["--questioned", "--plot", "x.svg"], "it does not go with --plot"),
        (["--questioned", "--crit", "7"], "--crit 7: a number from 0 to 1 is expected"),
        (["--questioned", "--confidence", "nan"], "--confidence nan"),
    ],
)
def test_bounds_and_flags_that_make_no_sense_are_refused(
    run: Path, command: Command, flags: list[str], said: str
) -> None:
    code, _, err = command("show", str(run), *flags)
    assert (code, said in err) == (2, True), err


def test_the_command_says_how_many_of_which(run: Path, command: Command) -> None:
    code, out, _ = command("show", str(run), "--questioned", "--confidence", "0.94")
    assert (code, "1 of 7 cases" in " ".join(out.split())) == (0, True)
