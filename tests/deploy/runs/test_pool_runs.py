"""Runs on several servers of which one gives no log-probabilities: refused at the start, or counted and said."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from openai_server import serving
from pool_servers import PoolServer

from moot.actors.models.openai_wire import REQUEST_ID_HEADER
from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.results.figures.summary import summary_blocks
from moot.deploy.results.report.render import report_markdown
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.run import arun
from moot.protocols.errors import CapabilityMissing

SETTINGS = {"judging.method": "none"}
LIMIT = 16
OPENINGS = 3 * LIMIT


async def run_on(servers: list[PoolServer], out: Path, *, limit: int = LIMIT, intrinsic: str = "normalised") -> Run:
    """Run SELENE on a pool of these servers."""
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(serving(server.handle)) for server in servers]
        hosts = ",".join(url.partition("://")[2].partition("/")[0] for url in urls)
        return await arun(
            model=f"http://{hosts}/v1#m", protocol="selene", limit=limit, engine="inline", out=out,
            set=SETTINGS | {"gate.intrinsic": intrinsic},
        )  # fmt: skip


def turns(done: Run) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = done.table("turns").to_pylist()
    return rows


async def test_a_pool_with_one_server_without_log_probabilities_is_refused_with_its_name(tmp_path: Path) -> None:
    servers = [PoolServer(), PoolServer(), PoolServer(logprobs=False)]
    with pytest.raises(CapabilityMissing, match=r"none at http://127.0.0.1:\d+/v1#m; .*gate.intrinsic=none"):
        await run_on(servers, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    done = await run_on(servers, tmp_path / "run", intrinsic="none")
    assert done.summary.skip_rate == 1.0


class Restarted(PoolServer):
    """A server that is started again without log-probabilities, and with another version, after the trial calls."""

    async def handle(self, request: web.Request) -> web.Response:
        if request.method == "POST" and request.headers[REQUEST_ID_HEADER] != STEP_KEY:
            self.logprobs, self.fingerprint = False, "b2"
        return await super().handle(request)


async def test_a_server_that_lost_log_probabilities_is_noticed_at_its_first_replies(tmp_path: Path) -> None:
    servers = [PoolServer(fingerprint="b1"), PoolServer(fingerprint="b1"), Restarted(fingerprint="b1")]
    done = await run_on(servers, tmp_path / "run")
    rows = turns(done)
    lacking = [row for row in rows if row["reading"] == "no_logprobs"]
    asked = Counter(row["server"] for row in rows)
    (server,) = {row["server"] for row in lacking}
    assert 0 < len(lacking) == asked[server] < len(rows) / 3
    (coverage, versions) = done.summary.warnings[:2]
    assert f"{len(lacking)} of {len(rows)} replies" in coverage
    assert server in coverage
    assert f"m b1: {len(rows) - len(lacking)}, m b2: {len(lacking)}" in versions


class Balancer:
    """One address in front of two servers: the trial calls reach the one with log-probabilities."""

    def __init__(self) -> None:
        self._backends = [PoolServer(), PoolServer(logprobs=False)]
        self._turns = itertools.count()

    async def handle(self, request: web.Request) -> web.Response:
        is_trial = request.method == "GET" or request.headers[REQUEST_ID_HEADER] == STEP_KEY
        return await self._backends[0 if is_trial else next(self._turns) % 2].handle(request)


@pytest.mark.parametrize("ignores", [False, True])
async def test_of_how_many_openings_the_gate_knows_p_is_said(tmp_path: Path, ignores: bool) -> None:
    balancer = Balancer()
    async with serving(balancer.handle) as url:
        done = await arun(
            model=f"{url}#m", protocol="selene", limit=LIMIT, engine="inline", out=tmp_path / "run",
            set=SETTINGS | ({"gate.if_untested": "ignore"} if ignores else {}),
        )  # fmt: skip
    gates = [json.loads(row["data"]) for row in done.table("events").to_pylist() if row["kind"] == "gate"]
    partly = [gate for gate in gates if 0 < sum(p is not None for p in gate["intrinsic"]) < 3]
    assert len(partly) > LIMIT / 2
    assert {gate["skip"] for gate in partly} == {ignores}
    coverage = done.summary.gate_coverage
    assert coverage is not None
    known = sum(p is not None for gate in gates for p in gate["intrinsic"])
    assert (coverage.known, coverage.openings, coverage.cases) == (known, OPENINGS, len(partly))
    assert f"{known} of {OPENINGS} openings" in report_markdown(summary_blocks(done.summary))
    openings = [each for each in done.summary.model_replies if each.template == "selene/opening"]
    assert [each.without_logprobs for each in openings] == [OPENINGS - known]
    (verdict, *_) = (row for row in done.table("verdicts").to_pylist() if '"p_known":' in row["payload"])
    assert "of 3 openings)" in report_markdown(done.transcript(verdict["case_id"]).report_blocks())


async def test_a_server_that_does_not_answer_the_trial_calls_is_recorded_as_untried(tmp_path: Path) -> None:
    late = PoolServer(status=503)
    await run_on([PoolServer(), late], tmp_path / "run", limit=2)
    (agent,) = read_run_yaml(RunFolder(tmp_path / "run"))["bindings"]["agent"]
    assert len(agent["profile"]["untried"]) == 1
    assert agent["profile"]["untried"][0].endswith("/v1")
