"""Records the runs of `commands.yaml` that `records/` does not have yet, or anew those that are named.

python tests/deploy/results/frozen/record.py [NAME...]
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[2] / "support"))

from planted_records import EVIL, PlantedSession, plant  # noqa: E402 - found there

from moot.actors.record.schema import CANCELLED  # noqa: E402

RECORDS = HERE / "records"
COMMANDS: dict[str, str] = yaml.safe_load((HERE / "commands.yaml").read_text("utf-8"))
KILLED_AFTER_S = {"killed": 12.0}
LEFT_OUT = ("owner.lock", "prompts")


def main(names: list[str]) -> None:
    """Record runs, in the order of the file: a run may reuse an earlier one."""
    makers: dict[str, Callable[[], None]] = {name: partial(execute, name) for name in COMMANDS}
    makers["planted"] = plant_record
    wanted = names or [name for name in makers if not archive_of(name).exists()]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE / "inputs", folder, dirs_exist_ok=True)
        os.chdir(folder)
        for name, make in makers.items():
            if name in wanted:
                make()
                pack(name)


def execute(name: str) -> None:
    """Run the commands of a record."""
    for line in COMMANDS[name].splitlines():
        words = shlex.split(line)
        out = () if "--out" in words else ("--engine", "inline", "--quiet", "--out", name)
        with suppress(subprocess.TimeoutExpired):  # it has been killed
            subprocess.run([sys.executable, "-m", "moot", *words, *out], timeout=KILLED_AFTER_S.get(name))


def plant_record() -> None:
    """A record with states that the simulated model does not bring about, row by row."""
    session, later = PlantedSession(), PlantedSession()
    opening: dict[str, Any] = {"template": "selene/opening"}

    def fail(case_id: str, failure: str, error: str) -> None:
        columns = {**opening, "outcome": "failed", "failure": failure, "error": error}
        session.reply(case_id, "opening/agent/0", None, **columns)
        session.verdict(case_id, None, "failed", failure=failure, error=f"agent/0: {error}")

    session.case("again")
    later.case("again")
    fail("again", "timeout", "no reply in 120 s")
    later.reply("again", "opening/agent/0", 40, attempt=1, text="Yes", answer="Yes", **opening)
    later.verdict("again", "Yes", "skipped", attempt=1, confidence=0.9, calls=1, prompt_tokens=39, wall_s=2.5)

    session.case("cut", "No")
    outside: dict[str, Any] = {**opening, "outcome": "invalid", "error": "`answer` is 'per', expected one of: Yes, No"}
    session.reply("cut", "opening/agent/0~1", 30, text="per", **outside)
    mended: dict[str, Any] = {**opening, "outcome": "repaired", "finish_reason": "length", "reasoning_tokens": 12}
    session.reply("cut", "opening/agent/0", 60, text="Yes", answer="Yes", served_model="m-2", **mended)
    session.reply("cut", "opening/agent/1", None, text="No", answer="No", served_model="m-1", **opening)
    session.verdict("cut", confidence=0.6, rounds=1, flags=("prompt-cut",), calls=2, calls_without_usage=1)

    session.case("evil", question=EVIL)
    session.said("evil", "opening/agent/0", "Yes", 0.7, EVIL)
    session.event("evil", "compared", "compare", {"text": EVIL, "share": 0.25, "none": None})
    session.verdict("evil", distribution={"Yes": 0.7, "No": 0.3}, payload={"note": EVIL})

    session.case("free", None)
    session.said("free", "opening/agent/0", "No", 0.4, "Nobody says.")
    session.verdict("free", "No", "unanimous", rounds=2)

    session.case("gone", "No")
    fail("gone", "refused", "HTTP 401: no such key")

    session.case("left")
    session.said("left", "opening/agent/0", "Yes", 0.8, "It is so.")

    session.case("withdrawn")
    session.said("withdrawn", "opening/agent/0", "No", 0.3, "It is not so.")
    session.event("withdrawn", CANCELLED, "")

    run: dict[str, Any] = {
        "schema_version": 1,
        "task": "cases:mine.csv",
        "protocol": "selene",
        "model": "m",
        "cases": 8,
    }
    plant(Path("planted"), [session, later], run)


def archive_of(name: str) -> Path:
    """The file of a record."""
    return RECORDS / f"{name}.tar.xz"


def pack(name: str) -> None:
    """Write a record's archive."""
    RECORDS.mkdir(exist_ok=True)

    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return None if Path(entry.name).name in LEFT_OUT else entry

    with tarfile.open(archive_of(name), "w:xz") as archive:
        archive.add(name, filter=kept)


if __name__ == "__main__":
    main(sys.argv[1:])
