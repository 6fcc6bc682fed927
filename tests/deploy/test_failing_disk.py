"""A disk that is full, a bound on files, a folder that cannot be made: one line, and the same command goes on."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import moot
from moot.actors.record.segments import SegmentWriter
from moot.protocols.errors import MootError, RecordError

RUN = ["run", "--engine", "inline", "--quiet", "--limit", "12", "--seed", "3"]
LIMITED = """
import resource, sys
from moot.deploy.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
main()
"""


def _command(out: Path, *, most_bytes: int = -1) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LIMITED, str(most_bytes), *RUN, "--out", str(out)]
    env = {**os.environ, "PYTHONPATH": str(Path(moot.__file__).parents[1]), "PYTHONSAFEPATH": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=out.parent, env=env)


@pytest.mark.slow
def test_a_bound_on_the_size_of_files_ends_the_run_in_one_line_and_it_goes_on_without(tmp_path: Path) -> None:
    stopped = _command(tmp_path / "run", most_bytes=60_000)
    assert stopped.returncode not in (0, 3), stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert "File too large" in stopped.stderr.strip().splitlines()[-1]
    done = moot.run(engine="inline", limit=12, seed=3, out=tmp_path / "run")
    whole = moot.run(engine="inline", limit=12, seed=3, out=tmp_path / "whole")
    assert done.exit_code == 0
    assert (done.summary.finished, done.summary.tokens_per_case) == (12, whole.summary.tokens_per_case)


def test_a_full_disk_ends_the_run_and_it_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was flushed before is on record, and what was being written when the disk was full is not read."""
    flushes = itertools.count()
    append = SegmentWriter.append

    def full(self: SegmentWriter, batch: Any) -> None:
        append(self, batch)
        if next(flushes) >= 5:
            assert self._file is not None
            self._file.flush()
            os.ftruncate(self._file.fileno(), os.fstat(self._file.fileno()).st_size - 12)
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SegmentWriter, "append", full)
    with pytest.raises(MootError, match="No space left"):
        moot.run(engine="inline", limit=12, seed=3, out=tmp_path / "run", max_open=1)
    monkeypatch.undo()
    done = moot.run(engine="inline", limit=12, seed=3, out=tmp_path / "run")
    assert (done.exit_code, done.summary.finished) == (0, 12)


@pytest.mark.parametrize("place", ["/proc/self/moot/run", "/dev/null/run"])
def test_a_folder_that_cannot_be_made_is_one_error(place: str) -> None:
    with pytest.raises(RecordError, match=f"cannot write to {place}"):
        moot.run(engine="inline", limit=1, out=place)
