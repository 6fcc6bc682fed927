"""SocraSynth over a closed list, from the run to what a reader sees: own answers, a consensus, and a score."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from not_none import not_none
from planted_records import PlantedSession, Printed

from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.show import show
from moot.deploy.runs.run import Run, run


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("closed") / "run"
    return run(protocol="socrasynth", task="sample-symptoms", engine="inline", out=str(out))


def verdicts(done: Run) -> dict[str, dict[str, Any]]:
    return {row["case_id"]: row for row in done.table("verdicts").to_pylist()}


def test_the_consensus_is_the_answer_and_is_scored(done: Run) -> None:
    """Competent simulated sides come to the right answer mostly; where they come to none, that counts as wrong."""
    rows = verdicts(done)
    reached = {case: json.loads(row["payload"])["consensus"] for case, row in rows.items()}
    assert {"at once", "concession"} <= set(reached.values())
    assert all((rows[case]["answer"] is None) == (how is None) for case, how in reached.items())
    assert not_none(done.summary.accuracy) > 0.6
    assert done.summary.scored == len(rows)


def test_runs_count_how_a_consensus_came_about(done: Run, printed: Printed) -> None:
    found = not_none(summarise(done.path).rulings)
    assert sum(found.consensus.values()) == len(verdicts(done))
    assert not any(found.winners.values())
    shown = " ".join(printed(show, done.path).split())
    assert f"consensus at once {found.consensus['at once']}, concession {found.consensus['concession']}" in shown
    assert "verdicts For" not in shown


def test_a_debate_says_who_argued_for_what_and_how_it_ended(done: Run, printed: Printed) -> None:
    rows = verdicts(done)
    for how, words in (("at once", "both sides named it independently"), ("concession", "a side conceded")):
        case = next(case for case, row in rows.items() if json.loads(row["payload"])["consensus"] == how)
        named = json.loads(rows[case]["payload"])["positions"]["named"]
        shown = " ".join(printed(show, done.path, case, width=200).split())
        assert re.search(rf"{re.escape(rows[case]['answer'])}: [a-z ]*{words}", shown)
        assert f"A for {named['agent/0']}, B for {named['agent/1']}." in shown
        assert f"B ({named['agent/1']}), opening" in shown
        assert "themes were proposed" not in shown


def test_without_a_consensus_the_document_says_so(session: PlantedSession, printed: Printed) -> None:
    session.case("c1", question="Which?", labels=("Flu", "Cold", "Measles"))
    listed = {"proposed": {}, "refined": {}, "topics": [{"title": "The answer"}], "wanted": 1}
    session.event("c1", "topics", "topics", {**listed, "merged": [], "dropped": [], "by": "protocol"})
    named = {"agent/0": "Flu", "agent/1": "Cold"}
    session.event("c1", "positions", "positions", {"named": named, "held": named, "agreed_at_once": False})
    session.event("c1", "versus", "versus", {"winner": "answer", "topics": ["The answer"], "by_topic": ["answer"]})
    session.verdict("c1", None, "plateau", flags=("no-consensus",), payload={"consensus": None})
    shown = " ".join(printed(show, session.plant(), "c1").split())
    assert "No answer: the sides reached no consensus" in shown
    assert shown.count("the sides reached no consensus") == 2
    assert "the judges prefer the single answer" in shown, "also of a debate without a panel"
