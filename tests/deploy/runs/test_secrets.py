"""A failing run on Ray leaves its keys nowhere: not in the record, not in what it prints, not in Ray's session."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from openai_server import completion, serving_in_thread

from moot.actors.record.schema import TABLES
from moot.actors.record.tables import read_table

KEY, KEY_OF_A_FILE = "sk-canary-4f1d0c9b7a6e5d3c", "sk-canary-of-a-file-8b2e6a1f"
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
FINE = {KEY: 1 + 15, KEY_OF_A_FILE: 1}
"""Calls that are answered before the server begins to fail and to repeat the key in its errors: what asks each whether
it is there, and so many of 18 openings that some debates reach their judges."""


@contextmanager
def spiteful_server() -> Iterator[tuple[int, set[str]]]:
    """Serves some calls, then fails in every way there is, with the key in each message; its port, and which keys it
    has repeated so far."""
    calls = Counter[str]()
    repeated: set[str] = set()

    async def handler(request: web.Request) -> web.StreamResponse:
        sent = request.headers.get("Authorization", "")
        key = sent.removeprefix("Bearer ")
        if request.method == "GET":
            return web.json_response({"data": []})
        calls[key] += 1
        if calls[key] <= FINE[key]:
            return web.json_response(completion(GOOD))
        status = (400, 401, 403, 429, 500, 200)[calls[key] % 6]
        repeated.add(key)
        echo = {"error": {"message": f"you sent {sent}, which is {key}"}}
        return web.json_response(echo, status=status, headers={"x-echo": sent, "Retry-After": "0"})

    with serving_in_thread(handler) as port:
        yield port, repeated


@pytest.mark.slow
def test_the_key_is_nowhere_after_a_failing_run(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Agents have it from a variable, judges theirs from a file."""
    session = Path(tempfile.mkdtemp(prefix="moot-"))  # Ray's sockets need a short path
    mounted = tmp_path_factory.mktemp("mounted") / "key"
    mounted.write_text(f"{KEY_OF_A_FILE}\n")
    keys = {"MOOT_CANARY_KEY": KEY, "MOOT_CANARY_JUDGE_FILE": str(mounted)}
    environment = {**os.environ, "RAY_TMPDIR": str(session), "NO_COLOR": "1", **keys}
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    try:
        with spiteful_server() as (port, repeated):
            config = tmp_path / "run.yaml"
            model = f"http://127.0.0.1:{port}/v1#m"
            roles = {
                "agent": {"model": model, "api_key_env": "MOOT_CANARY_KEY"},
                "judge": {"model": model, "api_key_env": "MOOT_CANARY_JUDGE"},
            }
            settings = {"gate.intrinsic": "none"}
            out = str(tmp_path / "run")
            run = {"limit": 6, "roles": roles, "set": settings, "placement": "actors", "structured": False, "out": out}
            config.write_text(json.dumps(run))  # JSON is YAML
            done = subprocess.run(
                [sys.executable, str(program), "run", str(config), "--log-level", "debug"],
                env=environment,
                capture_output=True,
                timeout=240,
                check=False,
            )
        assert done.returncode == 3, done.stderr.decode()[-2000:]
        assert repeated == {KEY, KEY_OF_A_FILE}, "the keys reach the server, or the test shows nothing"
        assert not [key for key in repeated if key.encode() in done.stdout + done.stderr]
        left = [path for root in (tmp_path, session) for path in root.rglob("*") if path.is_file()]
        record = {table: repr(read_table(out, table).to_pylist()) for table in TABLES}
        assert "you sent" in record["turns"], "the server's words are in the record"
        assert "/judge/" in record["turns"]
        assert [table for table, text in record.items() if any(key in text for key in repeated)] == []
        assert any("session_" in str(path) for path in left), "Ray's own logs are looked at"
        assert [str(path) for path in left if any(key.encode() in path.read_bytes() for key in repeated)] == []
    finally:
        shutil.rmtree(session, ignore_errors=True)
