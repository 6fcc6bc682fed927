"""Replies that cases share, in a plan from a sample of a large pilot."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.deploy.planning.read import read_pilot
from moot.deploy.running.run import run
from moot.protocols.case import Case, case_slots
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Verdict
from moot.protocols.replies import Position

CASES = [{"id": f"case-{n:02d}", "question": f"is {n} even", "labels": ["Yes", "No"]} for n in range(12)]


class Sharing:
    """Asks once for itself, then once for all that have its key: here nobody else."""

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        turn = await floor.ask("agent/0", "selene/opening", case_slots(case), reply=Position, path="own")
        wanted = Request("agent/0", "selene/opening", case_slots(case), Position, "all")
        await floor.shared(case.question, wanted)
        return Verdict(answer=turn.answer, how="shared")


def test_a_sample_has_its_own_part_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.shared_replies._JOURNALLED_EACH_S", 0.005)
    model = "simulated?latency_ms=2"
    run(task=CASES, protocol=Sharing(), engine="inline", out=tmp_path / "run", model=model, max_open=1)
    for most in (3, 12):
        monkeypatch.setattr("moot.deploy.planning.read.MOST_DEBATES", most)
        pilot = read_pilot(tmp_path / "run")
        assert pilot.shared == len(CASES)
        assert [len(debate.steps) for debate in pilot.debates] == [2] * most
