"""A full disk, a folder that cannot be made, a damaged record: one line, and the same command resumes."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

import moot
from moot.actors.record.folder import RunFolder
from moot.actors.record.salvage import salvage
from moot.actors.record.segments import SegmentWriter
from moot.actors.record.verify import verify
from moot.protocols.errors import MootError, RecordError


def test_a_full_disk_ends_the_run_and_it_resumes_when_there_is_space(
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


def test_a_debate_with_a_verdict_is_not_paid_again_when_its_replies_are_lost(tmp_path: Path) -> None:
    run = tmp_path / "run"
    before = moot.run(engine="inline", limit=4, seed=3, out=run)
    lost, paid = before.table("turns").num_rows, before.summary.tokens_paid
    verdicts = before.table("verdicts")
    (part,) = (run / "turns").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    assert salvage(RunFolder(run))
    again = moot.run(engine="inline", limit=4, seed=3, out=run)
    assert (again.exit_code, again.worked, again.table("verdicts")) == (0, False, verdicts)
    assert again.summary.simulated
    assert (again.summary.attempts_unconfirmed, again.summary.tokens_unconfirmed) == (lost, (0, paid))
    assert verify(RunFolder(run)).faults == []
