"""Trial calls are paid for: runs that belong together, and a server's kinds, make each of them once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from openai_server import ScriptedServer
from planted_records import Command

from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.service.process import _check
from moot.deploy.service.services import Services
from moot.deploy.service.settings import ServeConfig


@pytest.mark.parametrize(
    ("over", "trials"),
    [
        ("agents=1,2", 1),
        ("model=URL#one,URL#other", 2),  # each may do other things
        ("protocol=single-agent,majority-vote", 1),  # both ask for positions
    ],
)
def test_the_cells_of_a_grid_share_the_trials_of_what_they_ask_alike(
    tmp_path: Path, server: ScriptedServer, command: Command, over: str, trials: int
) -> None:
    once = ["--limit", "1", "--engine", "inline", "--quiet", "--temperature", "0.5"]  # a vote has another of its own
    model, protocol = ["--model", server.model], ["--protocol", "majority-vote"]
    assert command("run", *once, *model, *protocol, "--out", "alone")[0] == 0
    alone = server.calls.pop(STEP_KEY)
    grid = ["ablate", *once, "--over", over.replace("URL", server.url), "--out", "grid"]
    grid += [*([] if over.startswith("model") else model), *([] if over.startswith("protocol") else protocol)]
    assert command(*grid)[0] == 0
    assert server.calls.pop(STEP_KEY) == trials * alone
    cells = [RunFolder(each.parent) for each in (tmp_path / "grid").glob("*/run.yaml")]
    profiles = [read_run_yaml(cell)["bindings"]["agent"][0]["profile"] for cell in cells]
    assert len(profiles) == 2
    assert all(profiles), "every cell's record says how its model is asked"
    assert command(*grid)[0] == 0
    assert not server.calls[STEP_KEY]


async def test_a_server_asks_nothing_again_that_was_found_before_it_started(
    tmp_path: Path, server: ScriptedServer
) -> None:
    section = {"engine": "inline", "protocol": "single-agent", "model": server.model}
    config = ServeConfig.build({"out": str(tmp_path / "served"), "debates": section})
    tried = await asyncio.to_thread(_check, config, "127.0.0.1", 0, None)
    calls = server.calls[STEP_KEY]
    services = Services(config, tried)
    await services.open()
    await services.close()
    assert server.calls[STEP_KEY] == calls > 0
    recorded = read_run_yaml(RunFolder(tmp_path / "served" / "debates"))["bindings"]["agent"]
    assert recorded[0]["profile"] == tried["debates"]["agent"][0].model_dump(mode="json")["profile"]
