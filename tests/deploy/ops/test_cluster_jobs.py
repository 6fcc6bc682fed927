"""Runs that are submitted to a cluster as jobs: with the package installed there, and with a wheel of it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

import psutil
import pytest
import ray
from places import TESTS, copy_sources

from moot.actors.record.tables import read_table

pytestmark = pytest.mark.slow

HEAD = TESTS / "support" / "job_head.py"
CASE = {"question": "is it raining", "answer": True, "passage": "It is raining."}
OWN = """
from moot.protocols.messages import Verdict


class Own:
    async def run(self, case, floor):
        return Verdict(answer="Yes", how="asked")
"""
DRIVER = """
import json
import sys

import ray

import moot

if __name__ == "__main__":
    ray.init(address=sys.argv[1], runtime_env=json.loads(sys.argv[2]), log_to_driver=False, logging_level="error")
    try:
        small = {"placement": "packed", "cluster": {"moderators": 1}}
        print(moot.run(task="sample", limit=2, out=sys.argv[3], **small).status)
    except moot.UserError as error:
        print(error)
"""


@dataclass(frozen=True)
class FakeJobCluster:
    """A cluster that takes jobs from a folder."""

    cluster: str
    address: str
    folder: Path
    environment: Mapping[str, str]

    def submit(self, out: Path, *command: str) -> subprocess.CompletedProcess[str]:
        """What `ray job submit --working-dir . -- COMMAND` says; its agent may take a moment to be there."""
        submit = [sys.executable, "-m", "ray.scripts.scripts", "job", "submit", "--address", self.address]
        submit += ["--working-dir", ".", "--", *command]
        submit += ["--task", "boolq:mine.jsonl", "--protocol", "own:Own", "--out", str(out), "--quiet"]
        submit += ["--placement", "packed"]
        for _ in range(20):
            done = subprocess.run(
                submit, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=200, check=False
            )
            if "No available agent" not in done.stderr:
                break
            time.sleep(1.0)
        return done


@pytest.fixture(scope="module")
def jobs() -> Iterator[FakeJobCluster]:
    folder = Path(tempfile.mkdtemp(prefix="moot-"))  # Ray's sockets need a short path
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "HOME": str(folder), "RAY_AUTH_MODE": "token", "NO_COLOR": "1"}
    environment |= {"PIP_NO_DEPS": "1"}  # a wheel is installed for workers that find everything else
    environment |= {"PATH": f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    environment.pop("RAY_ADDRESS", None)
    (folder / ".ray").mkdir()
    (folder / ".ray/auth_token").write_text(secrets.token_hex(32))
    work = folder / "work"
    work.mkdir()
    (work / "mine.jsonl").write_text(json.dumps(CASE) + "\n")
    (work / "own.py").write_text(OWN)
    head = subprocess.Popen(
        [sys.executable, str(HEAD), str(folder / "ray")],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert head.stdin is not None
    assert head.stdout is not None
    try:
        found = next((line.split() for line in head.stdout if line.startswith("up ")), [])
        assert found, "no head came up"
        yield FakeJobCluster(found[1], found[2], work, environment)
    finally:
        family = [psutil.Process(head.pid), *psutil.Process(head.pid).children(recursive=True)]
        head.stdin.close()
        try:
            head.wait(60)
        finally:
            head.stdout.close()
            for process in family:
                if process.is_running():
                    process.kill()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as a wheel."""
    made = tmp_path_factory.mktemp("wheel")
    source = made / "source"
    copy_sources(source)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(made), "."]
    subprocess.run(build, cwd=source, check=True, capture_output=True, timeout=200)
    (found,) = made.glob("*.whl")
    return found


@pytest.mark.slow
def test_a_submitted_run_joins_the_cluster_of_its_job(jobs: FakeJobCluster, tmp_path: Path) -> None:
    done = jobs.submit(tmp_path / "run", "moot", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    (verdict,) = read_table(tmp_path / "run", "verdicts").to_pylist()
    assert (verdict["answer"], verdict["how"]) == ("Yes", "asked"), "by the protocol in the working folder"
    sessions = [path.name for path in Path(jobs.environment["HOME"], "ray").glob("session_2*")]
    assert len(sessions) == 1, "a Ray of its own would have a session there, too"


@pytest.mark.slow
def test_a_wheel_installs_the_package_on_workers_without_it(jobs: FakeJobCluster, wheel: Path, tmp_path: Path) -> None:
    libraries = str(Path(ray.__file__).parents[1])
    if PathFinder.find_spec("moot", [libraries]) is not None:
        pytest.skip("moot is installed into the folder of its dependencies, so workers find it there")
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    # A folder of PYTHONPATH gives its packages, but not what links of an editable install in it point to.
    bare = {"py_executable": str(tmp_path / "bare/bin/python"), "env_vars": {"PYTHONPATH": libraries}}
    (tmp_path / "driver.py").write_text(DRIVER)
    said = {}
    for name, runtime_env in (("without", bare), ("with", bare | {"py_modules": [str(wheel)]})):
        command = [sys.executable, "driver.py", jobs.cluster, json.dumps(runtime_env), name]
        done = subprocess.run(
            command, cwd=tmp_path, env=jobs.environment, capture_output=True, text=True, timeout=200, check=False
        )
        said[name] = done.stdout.strip()
        assert said[name], done.stderr[-3000:]
    assert "workers do not find moot" in said["without"]
    assert not (tmp_path / "without").exists()
    assert said["with"] == "finished"
    assert read_table(tmp_path / "with", "verdicts").num_rows == 2
