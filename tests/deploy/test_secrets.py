"""A failing run on Ray leaves its key nowhere: not in the record, not in what it prints, not in Ray's session."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from moot.actors.record.schema import TABLES
from moot.actors.record.tables import read_table

KEY = "sk-canary-4f1d0c9b7a6e5d3c"
GOOD = json.dumps({"answer": "Yes", "reasoning": "because", "confidence": 0.9})
# A Ray of the program's own: one that the run starts itself is removed with all it wrote.
PROGRAM = """
import sys

import ray

from moot.deploy.cli.main import main

if __name__ == "__main__":
    ray.init(address="local", include_dashboard=False, logging_level="error", object_store_memory=200 * 2**20)
    main()
"""
FINE = 12
"""Calls that are answered before the server begins to fail and to repeat the key in its errors."""


@contextmanager
def spiteful_server() -> Iterator[int]:
    """Serves some calls, then fails in every way there is, with the key in each message."""
    calls = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal calls
        sent = request.headers.get("Authorization", "")
        assert KEY in sent, "the key reaches the server, or the test shows nothing"
        calls += 1
        if request.method == "GET":
            return web.json_response({"data": []})
        if calls <= FINE:
            choice = {"message": {"role": "assistant", "content": GOOD}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 5, "completion_tokens": 5}
            return web.json_response({"choices": [choice], "usage": usage})
        status = (400, 401, 403, 429, 500, 200)[calls % 6]
        echo = {"error": {"message": f"you sent {sent}, which is {KEY}"}}
        return web.json_response(echo, status=status, headers={"x-echo": sent, "Retry-After": "0"})

    loop = asyncio.new_event_loop()
    application = web.Application()
    application.router.add_route("*", "/v1/{tail:.*}", handler)
    runner = web.AppRunner(application)

    async def start() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    port = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


@pytest.mark.slow
@pytest.mark.parametrize(("placement", "given"), [("actors", "variable"), ("packed", "file")])
def test_the_key_is_nowhere_after_a_failing_run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, placement: str, given: str
) -> None:
    session = Path(tempfile.mkdtemp(prefix="moot-"))  # Ray's sockets need a short path
    environment = {**os.environ, "RAY_TMPDIR": str(session), "NO_COLOR": "1"}
    if given == "variable":
        environment["MOOT_CANARY_KEY"] = KEY
    else:
        mounted = tmp_path_factory.mktemp("mounted") / "key"
        mounted.write_text(f"{KEY}\n")
        environment["MOOT_CANARY_KEY_FILE"] = str(mounted)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    try:
        with spiteful_server() as port:
            config = tmp_path / "run.yaml"
            member = {"model": f"http://127.0.0.1:{port}/v1#m", "api_key_env": "MOOT_CANARY_KEY"}
            settings = {"gate.intrinsic": "none"}
            roles = {"agent": member, "judge": member}
            out = str(tmp_path / "run")
            run = {"limit": 6, "roles": roles, "set": settings, "placement": placement, "out": out}
            config.write_text(json.dumps(run))  # JSON is YAML
            done = subprocess.run(
                [sys.executable, str(program), "run", str(config), "--log-level", "debug"],
                env=environment,
                capture_output=True,
                timeout=240,
                check=False,
            )
        assert done.returncode == 3, done.stderr.decode()[-2000:]
        assert KEY.encode() not in done.stdout + done.stderr
        left = [path for root in (tmp_path, session) for path in root.rglob("*") if path.is_file()]
        record = {table: repr(read_table(out, table).to_pylist()) for table in TABLES}
        assert "you sent" in record["turns"], "the server's words are in the record"
        assert [table for table, text in record.items() if KEY in text] == []
        assert any("session_" in str(path) for path in left), "Ray's own logs are looked at"
        assert [str(path) for path in left if KEY.encode() in path.read_bytes()] == []
    finally:
        shutil.rmtree(session, ignore_errors=True)
