"""A run whose replies were lost to damage: nothing rests on what is not there, and what is lost is debated again."""

from __future__ import annotations

from pathlib import Path

import moot
from moot.actors.record.folder import RunFolder
from moot.actors.record.salvage import salvage
from moot.actors.record.verify import verify


def test_debates_whose_replies_are_lost_are_held_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    before = moot.run(engine="inline", limit=4, seed=3, out=run)
    lost, paid = before.table("turns").num_rows, before.summary.tokens_per_case
    (part,) = (run / "turns").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    assert any(line.startswith(f"{lost} replies are lost; 4 debates") for line in salvage(RunFolder(run)))
    assert verify(RunFolder(run)).faults == []
    again = moot.run(engine="inline", limit=4, seed=3, out=run)
    assert (again.exit_code, again.table("turns").num_rows, again.table("verdicts").num_rows) == (0, lost, 4)
    assert again.summary.tokens_per_case == paid
    assert verify(RunFolder(run)).faults == []
