"""`moot debate` without a person: what it prints, where its record goes, what it refuses; and `moot decide`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from planted_records import Command

from moot.actors.record.tables import read_table
from moot.deploy.runs.decide import pending_forms
from moot.deploy.runs.single_debate import Subject, default_debate_out

SUBJECT = "Should cities ban cars?"


def _runs() -> list[str]:
    return sorted(path.name for path in Path("runs").iterdir())


@pytest.mark.parametrize("form", ["text", "json", "md"])
def test_it_prints_what_show_prints(form: str, command: Command) -> None:
    asked = ("debate", SUBJECT, "--labels", "Yes, No", "--set", "max_rounds=1", "--quiet", "--format", form)
    code, out, err = command(*asked)
    assert (code, err) == (0, "")
    (name,) = _runs()
    assert name.startswith("socrasynth-should-cities-ban-cars-")
    assert command("show", f"runs/{name}", "question", "--format", form)[1] == out
    assert command(*asked) == (0, out, "")
    (case,) = read_table(Path("runs") / name, "cases").to_pylist()
    assert (case["question"], case["labels"], case["gold"]) == (SUBJECT, ["Yes", "No"], None)
    assert len(yaml_sessions(name)) == 1, "the second command had nothing to do"


def yaml_sessions(name: str) -> list[object]:
    """The sessions of work on a run."""
    sessions: list[object] = yaml.safe_load((Path("runs") / name / "run.yaml").read_text())["sessions"]
    return sessions


def test_given_facts_are_the_passage(command: Command) -> None:
    Path("facts.txt").write_text("Trams carry 300 people.\n")
    quick = ("--protocol", "single-agent", "--quiet", "--out", "d")
    code, out, _ = command("debate", SUBJECT, "--facts", "facts.txt", *quick, "--format", "json")
    assert code == 0
    assert json.loads(out)["passage"] == "Trams carry 300 people."
    assert "Trams carry 300 people." in command("debate", SUBJECT, "--passage", "facts.txt", *quick)[1]


def test_another_debate_of_the_same_subject(command: Command) -> None:
    """The same command comes back to the latest one; other facts, labels and seeds have folders of their own."""
    asked = ("debate", SUBJECT, "--quiet", "--protocol", "single-agent")
    for more, count in (((), 1), ((), 1), (("--new",), 2), ((), 2), (("--new",), 3), (("--seed", "1"), 4)):
        assert command(*asked, *more)[0] == 0
        assert len(_runs()) == count
    first = _runs()[0]
    assert _runs()[:3] == [first, f"{first}-2", f"{first}-3"]
    assert len(yaml_sessions(f"{first}-2")) == 1
    Path("facts.txt").write_text("Trams carry 300 people.")
    assert command(*asked, "--facts", "facts.txt")[0] == 0
    assert command(*asked, "--labels", "Yes,No")[0] == 0
    assert len(_runs()) == 6


def test_another_configuration_reports_the_flag_that_starts_another_debate(command: Command) -> None:
    asked = ("debate", SUBJECT, "--quiet", "--protocol", "single-agent")
    assert command(*asked)[0] == 0
    changed = (*asked, "--save-tokens", "none")
    code, _, err = command(*changed)
    assert (code, err.count("\n")) == (2, 1)
    (run,) = _runs()
    assert f"Start a new one with --new --reuse runs/{run}: only what differs is paid for" in err
    assert command(*changed, "--new", "--reuse", f"runs/{run}")[0] == 0
    assert len(_runs()) == 2
    code, _, err = command(*changed, "--out", f"runs/{run}")
    assert code == 2
    assert "Start a new one with --out NEW --reuse" in err


def test_names_of_folders(tmp_path: Path) -> None:
    long = Subject("word " * 100).name
    assert long.startswith("word-word")
    assert len(long) < 52
    assert "--" not in long
    assert len(Subject("?!").name) == 8
    assert Subject("Это так?").name != Subject("Это не так?").name
    names = {Subject("A b?", *more).name for more in ((), ("c",), ("", ("Yes", "No")), ("", ("No", "Yes")))}
    assert len(names) == 4
    assert (
        "/" not in default_debate_out("module:Class", Subject("../../etc"), 0, "simulated", new=False)[len("runs/") :]
    )


def test_decisions_by_the_beginnings_of_actions(command: Command) -> None:
    """A parked run is moderated with `moot decide` alone: forms are listed, shown, and answered with their texts."""
    run = ["run", "--protocol", "moderated_debate:ModeratedDebate", "--attended", "--engine", "inline", "--quiet"]
    run += ["--limit", "1", "--out", "run"]
    err = command(*run)[2]
    assert "moot decide run sample-001 ACTION\n    ACTION is one of: go on, edit topics 'TEXT'\n" in err
    _, out, err = command("decide", "run")
    assert (out, err) == (
        "sample-001: Topics [go on|edit topics]\n",
        "to answer: moot decide run sample-001 go on\n",
    )
    out = command("decide", "run", "sample-001")[1]
    assert "2  edit topics (edits the text)" in out
    assert "\n  kappa 0.9" in out, "the body keeps its lines"
    assert command("decide", "run", "sample-001", "edit", "--text", "-", given="Cost\nPeace\n")[0] == 0
    assert command(*run)[0] == 0
    assert command("decide", "run", "sample-001", "go", "on")[0] == 0
    assert command(*run)[0] == 0
    for answer, why in (
        (("set",), "needs a text after it: `moot decide run sample-001 set kappa 'TEXT'`"),
        (("shrug",), "unknown action 'shrug'"),
        (("set", "0.3", "--text", "0.4"), "the text is given twice"),
    ):
        code, _, err = command("decide", "run", "sample-001", *answer)
        assert (code, why in err) == (2, True), err
    assert len(pending_forms("run")) == 1
    told = command("decide", "run", "sample-001", "set", "kappa", "0.3")[1]
    assert told == "recorded for sample-001: set kappa, with the text: 0.3\n"
    assert command(*run)[0] == 0
    told = command("decide", "run", "sample-001", "3", "and the trees?")[1]
    assert told == "recorded for sample-001: ask, with the text: and the trees?\n"
    assert command(*run)[0] == 0
    assert command("decide", "run", "sample-001", "end")[0] == 0
    assert command(*run)[0] == 0
    (verdict,) = read_table("run", "verdicts").to_pylist()
    assert json.loads(verdict["payload"]) == {"kappa": 0.3, "topics": "Cost\nPeace", "ended": True}
    code, _, err = command("decide", "run", "sample-001", "end")
    assert (code, "no pending decisions" in err) == (2, True)
