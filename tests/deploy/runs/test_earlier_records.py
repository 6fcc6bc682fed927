"""Records of an earlier version are shown, verified, resumed and reused without a paid call, and replayed; the same
command still makes the same record, fingerprints included. `earlier_records/README.md` says what they are."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from planted_records import Command

from moot.actors.record.schema import stable_columns
from moot.actors.record.tables import read_table

KEPT = Path(__file__).parent / "earlier_records"
COMMANDS: dict[str, str] = yaml.safe_load((KEPT / "commands.yaml").read_text("utf-8"))
EXIT = {"failed": 3}
"""Codes with which the commands end, where not with 0."""

LATER: dict[str, Any] = {"scored_groups": None, "gate_untested": None, "gate_coverage": None, "withdrawn": 0}
LATER_OF_REPLIES = {
    "plain_text": 0,
    "from_several": 0,
    "wrapped": 0,
    "by_letter": 0,
    "prompt_cut": 0,
    "overlong": 0,
    "without_logprobs": 0,
}
LATER_OF_RULINGS = {"versus": None, "versus_topics": None}
"""Figures that the records' version did not have, and among them counts of replies and of rulings."""

VERSUS: dict[str, Any] = {
    "socrasynth-preset": {"versus": {"debate": 1, "answer": 0, "tie": 0, "none": 0}, "versus_topics": None}
}
"""Rulings that were on record, and that the records' version did not count."""

LATER_OF_JUDGES = re.compile(r"(judge_stability|flip_rate)\w*_cases|audit_variants")
"""Numbers of cases behind the judges' figures, and kinds of variants."""

INTERRUPTED = {"stopped": ("--max-tokens", "1000000"), "killed": ()}
"""What is added to a command to finish it."""

OPPOSED = "EVINCE's judges read no rivals, SocraSynth's read what was said before; closing statements do not cool"
RUBRIC = "the rubric has a sentence more"
DRAWN = "a part of a short passage that repeats another is drawn again"
ASKED_OTHERWISE = {
    "ceda-preset": "the context agent may reply with more tokens, and a debater is told where that agent found nothing",
    **dict.fromkeys(("judge-panel", "constructor-auditor", "confident-liar", "early-token"), RUBRIC),
    **dict.fromkeys(("evince", "socrasynth", "socrasynth-preset", "socrasynth-labels", "attended", "subject"), OPPOSED),
    **dict.fromkeys(("selene", "selene-joining", "selene-branches", "always-debate", "stopped"), DRAWN),
}
"""Records of which some asks are others today, with the same prompts too, and why: they are shown, not reused."""

ALIKE = [name for name in COMMANDS if name not in ASKED_OTHERWISE]
RESUMED = [name for name in COMMANDS if ASKED_OTHERWISE.get(name, DRAWN) == DRAWN]

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All records, unpacked once."""
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(KEPT / "records.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def copied(kept: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder in which commands run, with what the commands read; the width of a terminal is fixed."""
    shutil.copytree(KEPT / "inputs", tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def take(kept: Path, name: str) -> list[str]:
    """Copy a record into the current folder; returns its runs, several where the command names several protocols."""
    shutil.copytree(kept / name, name)
    return sorted(path.parent.as_posix() for path in Path(name).rglob("run.yaml"))


def execute(command: Command, name: str, out: str, *more: str, model: str = "") -> None:
    """The record's own command with another folder, its own prompts, and, where one is given, another model."""
    given = COMMANDS[name]
    prompts = sorted(path.as_posix() for path in Path(name).rglob("prompts"))
    more = ("--prompts", prompts[0], *more)  # moot's own have changed since
    if model:
        given = re.sub(r"simulated[^ ,]*", model, given)
        more = (*more, *(() if "--model" in given else ("--model", model)))
    code, _, err = command(*shlex.split(given), "--engine", "inline", "--quiet", "--out", out, *more)
    assert code == EXIT.get(name, 0), err


def finish(command: Command, name: str) -> None:
    if name in INTERRUPTED:
        execute(command, name, name, *INTERRUPTED[name])


def shown(command: Command, *arguments: str) -> Any:
    code, out, err = command("show", *arguments, "--format", "json")
    assert code == 0, err
    return json.loads(out)


def stable(run: str, table: str, *but: str) -> Rows:
    """A table's rows without what differs from run to run, by key."""
    columns = [column for column in stable_columns(table) if column not in but]
    rows: Rows = read_table(run, table, columns).select(columns).to_pylist()
    for row in rows:
        if table == "turns" and row["data"]:  # the keys of replies have another order since
            row["data"] = json.loads(row["data"])
    return sorted(rows, key=lambda row: [str(row.get(key)) for key in ("case_id", "attempt", "path", "kind")])


def fingerprints(run: str) -> Counter[tuple[str, str, str]]:
    rows = read_table(run, "turns", ["case_id", "path", "fingerprint"]).to_pylist()
    return Counter((row["case_id"], row["path"], row["fingerprint"]) for row in rows)


def paid(run: str) -> dict[tuple[str, str], str]:
    """The id of each reply that a model was paid for here, by case and path."""
    rows = read_table(run, "turns", ["case_id", "path", "role", "reply_id", "reused_from"]).to_pylist()
    return {
        (row["case_id"], row["path"]): row["reply_id"]
        for row in rows
        if row["reused_from"] is None and row["role"] != "person"
    }


def test_all_templates_are_in_some_record(kept: Path) -> None:
    known = {path.relative_to(kept / "selene/prompts").with_suffix("").as_posix() for path in _templates(kept)}
    used = {row["template"] for path in kept.rglob("run.yaml") for row in stable(str(path.parent), "turns")}
    assert known - used == {"reask"}  # a part of the second request for one reply


def _templates(kept: Path) -> list[Path]:
    return list((kept / "selene" / "prompts").rglob("*.j2"))


@pytest.mark.parametrize("name", COMMANDS)
def test_it_is_shown(name: str, kept: Path, copied: Path, command: Command) -> None:
    expected = json.loads((KEPT / f"{name}.json").read_text("utf-8"))
    assert take(kept, name) == list(expected)
    texts = ""
    for run, of in expected.items():
        figures = LATER | of["run"]
        if figures["rulings"]:
            figures["rulings"] |= LATER_OF_RULINGS | VERSUS.get(name, {})
        if of["case"].get("versus"):
            of["case"]["versus"] |= {"topics": [], "by_topic": []}
        if figures["detection"]:
            figures["detection"] |= {"withdrawn": 0}
        figures["model_replies"] = [each | LATER_OF_REPLIES for each in figures["model_replies"]]
        now = {key: value for key, value in shown(command, run).items() if not LATER_OF_JUDGES.fullmatch(key)}
        assert now == figures
        assert shown(command, run, of["case"]["case_id"]) == of["case"]
        texts += command("show", run, of["case"]["case_id"])[1]
    assert texts == (KEPT / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", RESUMED)
def test_it_is_whole_and_resumed_for_nothing(name: str, kept: Path, copied: Path, command: Command) -> None:
    runs = take(kept, name)
    before = {run: (paid(run), fingerprints(run)) for run in runs}
    if name in INTERRUPTED:
        finish(command, name)
        figures = shown(command, name)
        assert figures["finished"] == figures["cases"]
        assert len(paid(name)) == figures["calls"] > len(before[name][0])
        assert before[name][0].items() <= paid(name).items()
        assert before[name][1] <= fingerprints(name)
    else:
        execute(command, name, name)
        assert {run: (paid(run), fingerprints(run)) for run in runs} == before
    for run in runs:
        assert not any(row["superseded"] for row in read_table(run, "turns").to_pylist())
        code, out, err = command("verify", run)
        assert (code, "whole" in out) == (0, True), err


@pytest.mark.parametrize("name", ALIKE)
def test_it_is_reused_and_replayed(name: str, kept: Path, copied: Path, command: Command) -> None:
    runs = take(kept, name)
    finish(command, name)
    for run in runs:
        _reuse(command, name, run)
        _replay(command, name, run)


def _reuse(command: Command, name: str, run: str) -> None:
    out = f"reusing/{run}"
    execute(command, name, out, "--reuse", run, *_further(name, run))
    failed = {(row["case_id"], row["path"]) for row in stable(run, "turns") if row["failure"]}
    assert {(case, path.partition("~")[0]) for case, path in paid(out)} <= failed  # what failed is asked again
    assert fingerprints(out) == fingerprints(run)
    assert stable(out, "verdicts") == stable(run, "verdicts")


def _replay(command: Command, name: str, run: str) -> None:
    out = f"replaying/{run}"
    execute(command, name, out, *_further(name, run), model=f"replay/{run}")
    assert paid(out) == {}
    assert _ruled(out) == _ruled(run)
    # what several cases share is recorded under the fingerprint, which has the model's name in it
    assert _said(out) == _said(run)


def _further(name: str, run: str) -> tuple[str, ...]:
    """What finishes the run; and its protocol, where the command names several."""
    return (*INTERRUPTED.get(name, ()), *(() if run == name else ("--protocol", Path(run).name)))


def _ruled(run: str) -> Rows:
    """Verdicts without the one flag that depends on the names of the models."""
    rows = stable(run, "verdicts")
    return [row | {"flags": [flag for flag in row["flags"] if flag != "judges-not-independent"]} for row in rows]


def _said(run: str) -> Rows:
    return [row for row in stable(run, "turns", "model", "fingerprint") if not row["case_id"].startswith("shared-")]


@pytest.mark.parametrize("name", [name for name in ALIKE if name != "killed"])
def test_its_command_makes_the_same_record(name: str, kept: Path, copied: Path, command: Command) -> None:
    runs = take(kept, name)
    finish(command, name)
    execute(command, name, f"again/{name}", *INTERRUPTED.get(name, ()))
    for run in runs:
        again = f"again/{run}"
        assert fingerprints(again) == fingerprints(run)
        for table in ("cases", "turns", "judgments", "verdicts"):
            assert stable(again, table) == stable(run, table)
        assert _noted(again) == _noted(run)


def _noted(run: str) -> Rows:
    """What the protocol noted, without what the records' version did not, and of bookkeeping what is always equal."""
    rows = [row for row in stable(run, "events") if row["kind"] not in ("asked", "abandoned")]
    for row in rows:
        row["data"] = {name: value for name, value in json.loads(row["data"]).items() if name != "embedded"}
    return rows
