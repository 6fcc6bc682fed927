"""Runs with a record in a bucket, through pyarrow's own S3 client: as in a folder, and resumed on any machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from object_store import ObjectStore, object_store
from openai_server import simulated_server, stats_of
from small_runs import ENCODER, assert_equal_records, assert_same_but_unpaid
from stored_record import read_remotely

from moot.actors.debate.inline_engine import InlineRuntime
from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.record import journal
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import RecordOwner
from moot.actors.record.store import lease
from moot.actors.record.store import store as stores
from moot.actors.record.store.mirror import record_path
from moot.actors.record.store.store import Store
from moot.actors.record.tables import read_table
from moot.actors.simulated.answer_key import AnswerKey
from moot.deploy.cli.main import app
from moot.deploy.runs import session_lifecycle
from moot.deploy.runs.decide import pending_forms as decisions
from moot.deploy.runs.decide import record_decision
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.run import run
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.single_debate import debate
from moot.protocols.errors import ConfigError, RecordError
from moot.protocols.tasks import open_task

pytestmark = pytest.mark.slow

CASES, OPEN, AGENTS = 16, 4, 3
LATENCY_S = 0.2
PAID_AGAIN = AGENTS * OPEN * (1 + round(journal.FLUSH_S / LATENCY_S))
"""At most: calls under way, and those that came since the last flush."""

KEY = AnswerKey.from_cases(open_task("sample").cases())


@pytest.fixture
def bucket() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "SETTLE_S", 0.0)
    monkeypatch.setattr(lease, "LEASE_S", 1.0)
    monkeypatch.setattr(lease, "_POLL_S", 0.1)
    monkeypatch.setattr(stores, "_PAUSES_S", (0.0, 0.0))


def run_in_bucket(out: str | Path, **options: Any) -> Run:
    defaults = {"task": "sample", "limit": 6, "engine": "inline", "seed": 5}
    return run(**{**defaults, **options, "out": str(out)})


def moot(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "moot", *arguments],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code, and output."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out + err


def command(*words: str) -> None:
    """A command in this process."""
    app(words, standalone_mode=False)


def served(port: int) -> dict[str, int]:
    """Calls that the simulated model has served, by step; those that only ask whether it is there are left out."""
    return {step: stats["calls"] for step, stats in stats_of(port)["by_step"].items() if step != STEP_KEY}


def assert_as_in_a_folder(uri: str, place: Path, **options: Any) -> None:
    """The record of a bucket is that of the same run in a folder."""
    run_in_bucket(place / "folder", **options)
    assert_equal_records(place / "folder", read_remotely(Store.of(uri), place / f"pulled{len(list(place.iterdir()))}"))


def assert_each_step_once(folder: Path, count: int) -> None:
    """A record has so many replies, each of another step."""
    steps = [(row["case_id"], row["path"]) for row in read_table(folder, "turns").to_pylist()]
    assert len(steps) == len(set(steps)) == count


def run_command(uri: str, port: int, engine: str) -> list[str]:
    model = f"http://127.0.0.1:{port}/v1#sim"
    command = ["run", "--task", "sample", "--limit", str(CASES), "--model", model, "--seed", "5", "--engine", engine]
    return [*command, "--encoder", ENCODER, "--max-open", str(OPEN), "--out", uri, "-q"]


@pytest.mark.smoke
def test_a_bucket_has_the_same_record_as_a_folder(bucket: ObjectStore, tmp_path: Path) -> None:
    done = run_in_bucket(bucket.uri("a/run"))
    assert (done.status, done.done, done.table("verdicts").num_rows) == ("finished", 6, 6)
    assert_as_in_a_folder(bucket.uri("a/run"), tmp_path)
    assert not [key for key in bucket.keys("a/run/") if key.startswith(("a/run/journal", "a/run/claims"))]
    bucket.requests.clear()
    assert not run_in_bucket(bucket.uri("a/run")).worked
    assert not {"PUT", "DELETE"} & set(bucket.requests)
    more = run_in_bucket(bucket.uri("a/run"), limit=9)
    assert (more.worked, more.done) == (True, 9)
    assert_as_in_a_folder(bucket.uri("a/run"), tmp_path, limit=9)


def test_a_killed_driver_is_resumed_from_an_empty_machine(bucket: ObjectStore, tmp_path: Path) -> None:
    uri, marks = bucket.uri("run"), tmp_path / "marks"
    for made in (marks, tmp_path / "here"):
        made.mkdir()
    with simulated_server(KEY, port=0, seed=5, latency_ms=LATENCY_S * 1000.0) as port:
        plan = {"MOOT_FAILPOINTS": "store.delta_put:2", "MOOT_FAILPOINT_DIR": str(marks)}
        killed = ended(moot(*run_command(uri, port, "inline"), TMPDIR=str(tmp_path / "here"), **plan))
        assert killed[0] == -signal.SIGKILL, killed
        partial = read_table(read_remotely(Store.of(uri), tmp_path / "partial"), "verdicts", []).num_rows
        assert 0 < partial < CASES
        run_in_bucket(uri, limit=CASES, model=f"http://127.0.0.1:{port}/v1#sim", max_open=OPEN)
        calls = served(port)
    again = sum(calls.values()) - len(calls)
    assert again <= PAID_AGAIN < len(calls)
    with simulated_server(KEY, port=port, seed=5):
        run_in_bucket(tmp_path / "folder", limit=CASES, model=f"http://127.0.0.1:{port}/v1#sim")
        assert len(served(port)) == len(calls)
    found = read_remotely(Store.of(uri), tmp_path / "pulled")
    assert_same_but_unpaid(tmp_path / "folder", found)
    assert_each_step_once(found, len(calls))


def test_a_killed_writer_comes_back_on_an_empty_folder(bucket: ObjectStore, tmp_path: Path) -> None:
    """On Ray, where writers are processes of their own: the record is the one of an inline run in a folder."""
    uri, marks = bucket.uri("run"), tmp_path / "marks"
    marks.mkdir()
    plan = {"MOOT_FAILPOINTS": "writer.flushed:2,store.part_put:3", "MOOT_FAILPOINT_DIR": str(marks)}
    with simulated_server(KEY, port=0, seed=5, latency_ms=LATENCY_S * 1000.0) as port:
        code, said = ended(moot(*run_command(uri, port, "ray"), "--max-tokens", "10000000", **plan))
        assert code == 0, said
        calls = served(port)
        run_in_bucket(tmp_path / "folder", limit=CASES, model=f"http://127.0.0.1:{port}/v1#sim")
    assert len(list(marks.iterdir())) == 2
    assert json.loads(bucket.objects["run/limits.json"][0].splitlines()[0])["epoch"] == 1
    found = read_remotely(Store.of(uri), tmp_path / "pulled")
    # what was asked again after the kill is noted again
    assert_same_but_unpaid(tmp_path / "folder", found)
    assert_each_step_once(found, len(calls))
    assert sum(calls.values()) - len(calls) <= PAID_AGAIN < len(calls)


def test_a_run_whose_record_lacks_verdicts_is_not_finished(
    bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(folder: RunFolder, epoch: int) -> None:
        for file in (*folder.parts.iterdir(), *folder.path.glob("*/*.parquet")):
            file.unlink()

    monkeypatch.setattr(session_lifecycle, "compact_leftovers", lose)
    with pytest.raises(RecordError, match=r"s3://.*: 2 of 2 cases have no recorded verdict"):
        run_in_bucket(bucket.uri("run"), limit=2)
    assert b"status: failed" in bucket.objects["run/run.yaml"][0]


@pytest.mark.parametrize("kind", ["bucket", "folder"])
def test_a_run_owned_by_another_process_meanwhile_is_not_taken_over(
    kind: str, bucket: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there when this one becomes its owner, and was not when this one looked."""
    out = bucket.uri("run") if kind == "bucket" else str(tmp_path / "run")
    take = RecordOwner.acquire

    async def late(folder: RunFolder) -> RecordOwner:
        monkeypatch.setattr(RecordOwner, "acquire", take)
        await asyncio.to_thread(run_in_bucket, out, limit=2)

        async def fail(self: object) -> None:
            raise RecordError("this engine does not start")

        monkeypatch.setattr(InlineRuntime, "start", fail)
        return await take(folder)

    monkeypatch.setattr(RecordOwner, "acquire", late)
    with pytest.raises(RecordError, match="does not start"):
        run_in_bucket(out, limit=3)
    assert read_table(record_path(out), "verdicts", []).num_rows == 2


def test_a_driver_that_stood_still_changes_nothing_any_more(bucket: ObjectStore, tmp_path: Path) -> None:
    uri = bucket.uri("run")
    with simulated_server(KEY, port=0, seed=5, latency_ms=500.0) as port:
        zombie = moot(*run_command(uri, port, "inline"))
        while sum(key.endswith(".delta") for key in bucket.puts) < 2:
            time.sleep(0.02)
            assert zombie.poll() is None
        zombie.send_signal(signal.SIGSTOP)
        done = run_in_bucket(uri, limit=CASES, model=f"http://127.0.0.1:{port}/v1#sim")
        assert (done.status, done.done, done.worked) == ("finished", CASES, True)
        before = read_remotely(Store.of(uri), tmp_path / "before")
        owner = bucket.objects["run/owner.json"]
        zombie.send_signal(signal.SIGCONT)
        code, said = ended(zombie)
    assert code == 2, said
    assert said.count("\n") <= 3
    assert "has taken the run over; this process ends" in said
    assert bucket.objects["run/owner.json"] == owner
    assert_equal_records(before, read_remotely(Store.of(uri), tmp_path / "after"))


@pytest.mark.parametrize(
    "at", ["claims/", "owner.json", "epochs.json", "run.yaml", "begun", "000000.delta", "turns/", "parts/"]
)
def test_a_store_that_refuses_ends_the_run_and_loses_nothing(bucket: ObjectStore, at: str, tmp_path: Path) -> None:
    bucket.fault = lambda kind, key: "AccessDenied" if kind == "PUT" and at in key else None
    with pytest.raises(RecordError, match="ACCESS_DENIED"):
        run_in_bucket(bucket.uri("run"), limit=2)
    bucket.fault = lambda kind, key: None
    run_in_bucket(bucket.uri("run"), limit=2)
    assert_as_in_a_folder(bucket.uri("run"), tmp_path, limit=2)


def test_a_store_that_stutters_is_asked_again(bucket: ObjectStore, tmp_path: Path) -> None:
    seen = set[str]()

    def every_first_time(kind: str, key: str) -> str | None:
        new = kind in ("PUT", "GET") and "prompts" not in key and (kind + key) not in seen
        seen.add(kind + key)
        return "InternalError" if new else None

    bucket.fault = every_first_time
    run_in_bucket(bucket.uri("run"), limit=2)
    bucket.fault = lambda kind, key: None
    assert_as_in_a_folder(bucket.uri("run"), tmp_path, limit=2)


def test_every_command_that_reads_a_run_reads_a_bucket(
    bucket: ObjectStore, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each lists twice a run at most, for its journal and the rest, and says the URI where it would say the folder."""
    monkeypatch.setenv("COLUMNS", "200")
    one, other = bucket.uri("one"), bucket.uri("other")
    run_in_bucket(one, limit=4, set={"both_branches": True})
    run_in_bucket(other, limit=4, protocol="constructor-auditor")
    commands = {
        ("show", one): f"record: {one}",
        ("show", one, "--format", "json"): one,
        ("compare", one, other): "accuracy",
        ("plan", "--from", one, "--cases", "4"): f"{one}: selene on sample",
        ("plan", "--from", one, "--cases", "4", "--format", "json"): f'"path": "{one}"',
        ("decide", one): "no pending decisions",
        ("analyze", other, "--out", str(tmp_path / "made"), "--permutations", "100", "--resamples", "50"): "made",
    }
    for words, said in commands.items():
        bucket.requests.clear()
        command(*words)
        told = "".join(capfd.readouterr())
        assert said in told, told
        assert "moot-scratch" not in told
        assert bucket.requests["LIST"] <= 2 * sum(each.startswith("s3://") for each in words)
        assert not {"PUT", "DELETE"} & set(bucket.requests)


def test_a_command_leaves_no_folder_and_says_the_uri_in_errors(bucket: ObjectStore, tmp_path: Path) -> None:
    run_in_bucket(bucket.uri("run"), limit=1)
    for uri, at, said in ((bucket.uri("run"), "one-that-is-not", "sample-0"), (bucket.uri("none"), "x", "run.yaml")):
        code, told = ended(moot("show", uri, at, TMPDIR=str(tmp_path)))
        assert (code, told.count("\n")) == (2, 1)
        assert said in told
        assert "moot-scratch" not in told
        assert not list(tmp_path.iterdir())


def test_a_person_decides_in_a_bucket(bucket: ObjectStore) -> None:
    uri = bucket.uri("run")
    attended = {"protocol": "socrasynth", "task": "sample-subjects", "limit": 1, "attended": True}
    waiting = run_in_bucket(uri, **attended)
    assert waiting.status == "waiting"
    path = record_path(uri)
    form = decisions(path)[0]
    record_decision(path, form.case_id, form.form.actions[0])
    assert not decisions(record_path(uri))
    assert run_in_bucket(uri, **attended).done + len(decisions(record_path(uri))) == 1


def test_replies_of_a_bucket_are_reused(bucket: ObjectStore) -> None:
    run_in_bucket(bucket.uri("old"), limit=2)
    assert run_in_bucket(bucket.uri("new"), limit=2, reuse=bucket.uri("old")).summary.tokens_paid == 0


def test_what_a_bucket_cannot_do_is_refused_before_anything_is_written(bucket: ObjectStore, tmp_path: Path) -> None:
    uri, here = bucket.uri("run"), f"endpoint_override=127.0.0.1:{bucket.port}&scheme=http"
    bucket.put("full/notes.txt", b"")
    (tmp_path / "doc.txt").write_text("A lamp is blue.")
    claims = {"protocol": "ceda", "task": "sample-claims", "docs": [str(tmp_path / "doc.txt")]}
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: run_in_bucket(bucket.uri("run", bucket="other")), "there is no 'other'"),
        (lambda: run_in_bucket(f"s3://runs/x?{here}&secret_key=s"), "holds a secret"),
        (lambda: run_in_bucket("s3://runs/x?endpoint_override=127.0.0.1:1&scheme=http"), "cannot be reached"),
        (lambda: run_in_bucket(bucket.uri("full")), r"other files and no run \(notes.txt\)"),
        (lambda: run_in_bucket(bucket.uri("docs"), **claims), "a library that every node sees"),
        (lambda: run_in_bucket(tmp_path / "x", model=f"replay/{uri}"), "copy the run into one"),
        (
            lambda: run_in_bucket(uri, reuse=bucket.uri("old"), engine="ray", address="127.0.0.1:1"),
            "on a cluster the folder must be visible",
        ),
        (lambda: run_in_bucket(uri, reuse=uri), "own folder"),
        (lambda: command("ablate", "--over", "agents=2,3", "--out", uri), "a grid needs a local folder"),
        (lambda: command("run", "--out", uri.replace("s3://", "s3:/")), "give a URI as text"),
        (lambda: command("show", "ftp://host/x"), "no filesystem for ftp://"),
        (lambda: asyncio.run(debate("Is a lamp blue?", out=uri)), "a single debate needs a local folder"),
        (lambda: OpenRun(RunConfig(out=uri)), "submitted cases are recorded in a local folder"),
    ]
    for begin, said in refused:
        with pytest.raises(ConfigError, match=said):
            begin()
    assert bucket.puts == ["full/notes.txt"]
