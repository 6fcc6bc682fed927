"""A Ray that moot starts answers this machine only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace

import pytest
import ray

import moot
from moot.actors.remote.ray_session import RaySession
from moot.protocols.errors import ConfigError

LISTENS = """
import json, os, psutil
from moot.actors.remote.ray_session import RaySession
joined = RaySession(None)
joined.connect()
try:
    ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = [each.laddr.ip for one in ours for each in one.net_connections("inet") if each.status == "LISTEN"]
    print(json.dumps([found, os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")]))
finally:
    joined.disconnect()
print(json.dumps(os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")))
"""


@pytest.mark.slow
def test_a_local_ray_listens_on_loopback() -> None:
    done = subprocess.run([sys.executable, "-c", LISTENS], capture_output=True, text=True, timeout=120, check=True)
    first, last = done.stdout.splitlines()[-2:]
    addresses, _ = json.loads(first)
    assert len(addresses) > 3
    loose = [each for each in addresses if not _loopback(each)]
    assert loose == []
    assert json.loads(last) is None


def test_no_local_ray_is_started_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**5))
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", pytest.fail)
    with pytest.raises(ConfigError, match=r"0\.1 MB free.*RAY_TMPDIR"):
        RaySession("local").connect()


def _loopback(address: str) -> bool:
    found = ip_address(address)
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


COMMAND = "from moot.deploy.cli.main import main; main()"
MINE = """
from moot.protocols.selene.protocol import Selene


class Mine(Selene):
    name = "mine"
"""
PACKAGES = ("yaml", "pyarrow", "pydantic", "msgspec", "structlog", "aiohttp", "jinja2", "json_repair")


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [("--engine", "inline"), ("--protocol", "beside_data:Mine")], ids=["a command", "a class that is named"]
)
def test_no_process_imports_a_package_that_lies_beside_the_data(more: tuple[str, ...], tmp_path: Path) -> None:
    data, imported, bin_folder = tmp_path / "data", tmp_path / "imported", tmp_path / "bin"
    for folder in (data, imported, bin_folder):
        folder.mkdir()
    for name in PACKAGES:
        (data / f"{name}.py").write_text(f"open({str(imported / name)!r}, 'w'); raise ImportError('not this one')")
    (data / "beside_data.py").write_text(MINE)
    (bin_folder / "command").write_text(COMMAND)
    words = ["run", "--task", "sample", "--model", "simulated", "--limit", "1", "--quiet", "--out", "run", *more]
    done = subprocess.run(
        [sys.executable, str(bin_folder / "command"), *words],
        cwd=data,
        env=os.environ | {"PYTHONPATH": str(Path(moot.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert list(imported.iterdir()) == []
    assert done.returncode == 0, done.stderr
    assert "not this one" not in done.stderr
