"""The image and the cluster of `ray up`: what is built, from which sources, as whom, and what Ray makes of it."""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from places import ROOT
from ray.autoscaler._private.util import prepare_config, validate_config
from ray.scripts.scripts import cli

DOCKERFILE = ROOT / "deploy" / "ops" / "docker" / "Dockerfile"
CLUSTER = ROOT / "deploy" / "ops" / "ray-cluster.yaml"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
IGNORED = [
    line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")
]  # fmt: skip


@dataclass
class DockerStage:
    """A stage of the Dockerfile: its base, its name, and its instructions with their words."""

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, kind: str) -> list[str]:
        """Arguments of each instruction of a kind."""
        return [rest for step, rest in self.steps if step == kind]


def _stages() -> list[DockerStage]:
    found: list[DockerStage] = []
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(str.strip, text.splitlines()):
        step, _, rest = line.partition(" ")
        assert step in ("FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "CMD"), step
        if step == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(DockerStage(base, name))
        else:
            found[-1].steps.append((step, rest))
    return found


BUILD, FINAL = _stages()


def test_the_bases_are_pinned_and_a_python_that_we_support() -> None:
    assert BUILD.base == FINAL.base
    tag = re.fullmatch(r"python:(\d+\.\d+\.\d+)-slim-bookworm(@sha256:[0-9a-f]{64})?", FINAL.base)
    assert tag
    assert SpecifierSet(PROJECT["project"]["requires-python"]).contains(tag[1])


def test_everything_is_installed_as_it_was_tested() -> None:
    installs = [run for run in BUILD.all("RUN") if "pip install" in run]
    assert len(installs) == 2
    assert all("--constraint constraints.txt" in run for run in installs)
    (extras,) = re.findall(r"'\.\[([a-z,]+)\]'", installs[-1])
    known = PROJECT["project"]["optional-dependencies"]
    assert set(extras.split(",")) == {"cluster", "data", "serve", "tracing"} <= set(known)
    pins = {
        line.partition("==")[0]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    }
    wanted = PROJECT["project"]["dependencies"] + [need for extra in extras.split(",") for need in known[extra]]
    assert {Requirement(need).name for need in wanted} <= pins


def test_the_image_contains_no_build_tools() -> None:
    assert [rest for rest in FINAL.all("COPY") if rest != "--from=build /installed /usr/local"] == []
    assert "--prefix /installed" in BUILD.all("RUN")[-1]
    (run,) = FINAL.all("RUN")
    packages = re.search(r"apt-get install --yes --no-install-recommends ([^&]*)&&", run)
    assert packages
    assert packages[1].split() == ["wget"], "KubeRay's readiness probe of a Serve worker calls it"
    assert "rm -rf /var/lib/apt/lists/*" in run


def test_it_runs_as_a_user_without_rights() -> None:
    assert FINAL.steps[-2:] == [("USER", "10001:10001"), ("CMD", '["moot", "--help"]')]
    assert "useradd --uid 10001 " in FINAL.all("RUN")[0]


def _is_sent(path: str) -> bool:
    """Whether a path of the repository reaches the build, by `.dockerignore`: the last pattern that fits decides."""
    sent = True
    for line in IGNORED:
        pattern = line.lstrip("!")
        tops = [path, *(str(parent) for parent in Path(path).parents if str(parent) != ".")]
        names = [*tops, *(Path(top).name for top in tops)] if pattern.startswith("**/") else tops
        if any(fnmatch(name, pattern.removeprefix("**/")) for name in names):
            sent = line.startswith("!")
    return sent


def test_what_is_copied_is_there_and_what_is_private_is_not() -> None:
    copied = [word for rest in BUILD.all("COPY") for word in rest.split()[:-1]]
    assert all((ROOT / name).exists() and _is_sent(name) for name in copied), copied
    needed = {Path(folder).parts[0] for folder in PROJECT["tool"]["setuptools"]["package-dir"].values()}
    assert {"moot", "pyproject.toml", *needed, *PROJECT["project"]["license-files"]} <= set(copied)
    assert _is_sent("actors/models/prices.yaml")
    assert _is_sent("deploy/cli/main.py")
    private = [".git/config", ".venv/bin/python", "runs/x/run.yaml", "keys.env", "actors/.env", "token", "shared/x"]
    others = ["deploy/ops/kubernetes/shared.yaml", "docs/operate/cluster.md", "moot/__pycache__/x.pyc", "tests/x.py"]
    assert [path for path in private + others if _is_sent(path)] == []


def _cluster() -> dict[str, Any]:
    given: dict[str, Any] = yaml.safe_load(CLUSTER.read_text())
    return given


def test_ray_up_takes_the_cluster() -> None:
    made = prepare_config(_cluster())
    validate_config(made)
    assert "https://" not in str([made[key] for key in made if key.endswith("commands")]), "the provider's own commands"
    assert (made["available_node_types"]["head"]["max_workers"], made["max_workers"]) == (0, 10)
    assert made["available_node_types"]["head"]["resources"] == {"CPU": 0}


def test_the_cluster_opens_nothing_and_contains_no_secret() -> None:
    given = _cluster()
    assert given["provider"]["use_internal_ips"] is True
    assert given["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    for kind in given["available_node_types"].values():
        assert kind["node_config"]["SecurityGroupIds"] == ["YOUR-SECURITY-GROUP"]
    for role in ("head", "worker"):
        start = given[f"{role}_start_ray_commands"][-1]
        assert "RAY_AUTH_MODE=token; set +a" in start
        words = shlex.split(start.partition("ray start ")[2])
        known = {option for one in cli.commands["start"].params for option in one.opts}
        assert {word.partition("=")[0] for word in words} <= known
        assert not [word for word in words if "0.0.0.0" in word]
    assert "--num-cpus=0" in given["head_start_ray_commands"][-1]


def test_the_cluster_installs_what_the_repository_builds() -> None:
    given = _cluster()
    wheel = f"moot-{PROJECT['project']['version']}-py3-none-any.whl"
    assert given["file_mounts"][f"~/install/{wheel}"] == f"dist/{wheel}"
    assert (ROOT / given["file_mounts"]["~/install/constraints.txt"]).is_file()
    (install,) = [command for command in given["setup_commands"] if wheel in command]
    assert "--constraint ~/install/constraints.txt" in install
    (extras,) = re.findall(r"\.whl\[([a-z,]+)\]", install)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
