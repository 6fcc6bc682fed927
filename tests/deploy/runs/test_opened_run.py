"""Runs opened from their folders: whatever became of them, with their cases, tables and debates."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_records import Command, InlineRun, PlantedSession

import moot
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.protocols.errors import RecordError


def test_an_opened_run_is_the_run_that_was_made(tmp_path: Path) -> None:
    made = moot.run(task="sample", limit=3, engine="inline", out=tmp_path / "run")
    run = moot.open_run(made.path)
    assert (run.status, run.done, run.failed, run.left, run.exit_code) == ("finished", 3, 0, 0, 0)
    assert [case.case_id for case in run.cases] == ["sample-001", "sample-002", "sample-003"]
    assert run.table("verdicts") == made.table("verdicts")
    assert run.summary == made.summary
    assert run.transcript("sample-002").case_id == "sample-002"
    assert repr(run) == f"<Run {made.path}: finished, 3 done, 0 failed>"


def test_print_shows_what_the_command_shows(
    inline_run: InlineRun, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    run = moot.open_run(inline_run("selene"))
    _, shown, _ = command("show", str(run.path))
    assert "Against agent 0's first answer" in shown
    assert str(run).split("\n") == [line.rstrip() for line in shown.rstrip().split("\n")]
    assert "Against agent 0" in run._repr_html_()


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        ("finished", "finished", 3),
        ("stopped", "stopped", 4),
        ("failed", "failed", 3),
        ("running", "killed", 130),
        (None, "unknown", 3),
    ],
)
def test_a_run_that_did_not_finish_is_opened(session: PlantedSession, said: str | None, status: str, code: int) -> None:
    for case_id in ("done", "parked", "begun", "failed"):
        session.case(case_id)
    session.verdict("done")
    session.verdict("failed", None, "failed", failure="quorum")
    session.event("parked", "parked", "decide")
    for case_id in ("parked", "begun"):
        session.reply(case_id, "opening/agent/0", 9)
    sessions = [{"status": "finished"}, {"status": said, "stopped_by": "--max-tokens"}]
    run = moot.open_run(session.plant(cases=5, sessions=sessions))
    assert (run.status, run.exit_code, run.stopped_by) == (status, code, "--max-tokens")
    assert (run.done, run.failed, run.left, run.parked) == (2, 1, 3, ("parked",))
    assert run.under_way == (0 if status == "finished" else 1)
    assert (f"this run is {status}, 3 cases without a verdict" in str(run)) == (status != "finished")
    assert [case.case_id for case in run.cases.only("failed")] == ["failed"]
    assert run.transcript("begun").state == "open"


def test_a_run_that_a_process_owns_is_live(session: PlantedSession) -> None:
    session.case("c1")
    folder = session.plant(sessions=[{"status": "running"}])
    owner = Ownership.acquire(RunFolder(folder))
    try:
        assert moot.open_run(folder).status == "live"
    finally:
        owner.release()
    assert moot.open_run(folder).status == "killed"


def test_what_takes_a_folder_takes_a_run(inline_run: InlineRun) -> None:
    selene, always = (moot.open_run(inline_run(name)) for name in ("selene", "always-debate"))
    found = moot.compare([selene, always], baseline=always)
    assert [row.protocol for row in found.rows] == ["always-debate", "selene"]
    assert moot.compare(selene, inline_run("always-debate"), baseline=always) == found
    with pytest.raises(moot.ConfigError, match="at least two runs"):
        moot.compare(selene)
    assert moot.summarise(selene) == selene.summary


def test_a_wrong_folder_or_case_says_what_to_do(inline_run: InlineRun, tmp_path: Path) -> None:
    folder = inline_run("selene")
    with pytest.raises(RecordError, match=r"no run there .* name a run's folder"):
        moot.open_run(tmp_path)
    with pytest.raises(RecordError, match=f"name one of the runs in it: {folder.name}"):
        moot.open_run(folder.parent)
    with pytest.raises(moot.ConfigError, match="nearest 'sample-001'"):
        moot.open_run(folder).transcript("sample-01")
