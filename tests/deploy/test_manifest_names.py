"""The manifests, the image, the documentation and the code speak of the same things by the same names."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import ray
import typer
import yaml
from manifests import CONTAINERS, FOLDER, OBJECTS, PAGE, PODS, RAY, ROOT, cluster
from typer.exceptions import TyperException
from typer.testing import CliRunner

from moot.actors.placement import Site
from moot.deploy.cli.main import app
from moot.deploy.running.config import RunConfig
from moot.deploy.running.flags import parse_settings
from moot.deploy.serving.settings import ServeConfig

OURS = "registry.example.com/moot"
CONSTRAINTS = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")
)
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CONFIGS = {
    thing["metadata"]["name"]: thing["data"] for _, thing in OBJECTS if thing["kind"] == "ConfigMap"
}  # fmt: skip
COMMANDS = {thing["metadata"]["name"]: thing["spec"]["entrypoint"] for thing in RAY if thing["kind"] == "RayJob"}
SERVICES = {
    thing["metadata"]["name"]: yaml.safe_load(thing["spec"]["serveConfigV2"])
    for thing in RAY
    if thing["kind"] == "RayService"
}
POLICIES = {thing["metadata"]["name"]: thing["spec"] for _, thing in OBJECTS if thing["kind"] == "NetworkPolicy"}


def test_one_image_of_ours_and_each_is_pinned() -> None:
    images = {container["image"] for _, container, _ in CONTAINERS}
    ray_version = CONSTRAINTS["ray"]
    assert {image for image in images if image.startswith(OURS)} == {f"{OURS}:{VERSION}"}
    assert {image for image in images if not image.startswith(OURS)} == {
        f"rayproject/ray-llm:{ray_version}-py312-cu130"
    }


def test_ray_is_the_one_that_was_tested() -> None:
    assert {cluster(thing)["rayVersion"] for thing in RAY} == {CONSTRAINTS["ray"]} == {ray.__version__}


def _parsed(command: str) -> dict[str, Any]:
    """The options of a `moot` command, by our own command line; what it does not know raises."""
    name, *words = shlex.split(command)
    assert name == "moot"
    group = typer.main.get_command(app)
    made: dict[str, Any] = group.commands[words[0]].make_context(words[0], words[1:]).params  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("job", COMMANDS)
def test_a_job_runs_a_command_of_ours_with_a_configuration_that_is_taken(job: str, tmp_path: Path) -> None:
    given = _parsed(COMMANDS[job])
    assert given["address"] == "auto"
    head = next(pod for pod in PODS if (pod.owner, pod.role) == (job, "head"))
    volumes = {volume["name"]: volume for volume in head.spec["volumes"]}
    mounted = CONFIGS[volumes[head.mounts["/etc/moot"]]["configMap"]["name"]]
    assert str(given["file"].parent) == "/etc/moot"
    file = tmp_path / given["file"].name
    file.write_text(mounted[file.name])
    done = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "run"), "--dry-run"])
    assert done.exit_code == 0, done.output


def test_a_command_with_a_flag_that_is_not_ours_is_refused() -> None:
    with pytest.raises(TyperException, match="adress"):
        _parsed(COMMANDS["moot-batch"].replace("--address", "--adress"))


def test_the_commands_of_the_page_are_ours() -> None:
    found = re.findall(r"(?:^\$|--) (moot (?!plan|serve).*)$", PAGE.read_text(), re.MULTILINE)
    assert len(found) >= 2
    for command in found:
        _parsed(command.split(" | ")[0])


def test_the_standing_cluster_grows_for_the_command_of_the_page() -> None:
    """An autoscaler adds workers for what does not fit on those of the start; a run waits until it is placed."""
    (spec,) = (thing["spec"] for thing in RAY if thing["kind"] == "RayCluster")
    (group,) = spec["workerGroupSpecs"]
    cores = float(group["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"])
    (command,) = re.findall(r"job submit .* -- (moot .*)$", PAGE.read_text(), re.MULTILINE)
    given = _parsed(command)
    placing = RunConfig.model_validate({"cluster": parse_settings(given["cluster"])}).cluster
    site = Site(cores=cores * group["minReplicas"], nodes=1 + group["minReplicas"], joined=True)
    moderators, _ = placing.counts(site, packed=given["placement"] == "packed", max_open=200)
    asked = moderators * placing.cpus("moderator", site)
    others = placing.writers * placing.cpus("writer", site) + placing.cpus("limiter", site)
    assert 2 * site.cores < asked + others < cores * group["maxReplicas"]
    said = re.search("--placement .*", command)
    assert said is not None
    for file in (FOLDER / "ray-cluster.yaml", ROOT / "deploy" / "ray-cluster.yaml", ROOT / "deploy/docs/cluster.md"):
        assert f"`{said[0]}`" in " ".join(file.read_text().split()), file


@pytest.mark.parametrize("thing", RAY, ids=lambda thing: thing["metadata"]["name"])
def test_a_record_outlives_its_cluster(thing: dict[str, Any]) -> None:
    """On a volume, every pod that writes mounts the claim; a bucket wants an identity instead."""
    name = thing["metadata"]["name"]
    pods = [pod for pod in PODS if pod.owner == name and pod.start is not None]
    if name == "moot-llm":
        return
    outs = [_parsed(COMMANDS[name])["out"]] if name in COMMANDS else []
    outs += [yaml.safe_load(CONFIGS["moot-serve"]["serve.yaml"])["out"]] if name in SERVICES else []
    if outs and outs[0].startswith("s3://"):
        assert {pod.spec["serviceAccountName"] for pod in pods} == {"moot-record"}
        return
    claims = {thing["metadata"]["name"] for _, thing in OBJECTS if thing["kind"] == "PersistentVolumeClaim"}
    for pod in pods:
        volumes = {volume["name"]: volume for volume in pod.spec["volumes"]}
        assert volumes[pod.mounts["/runs"]]["persistentVolumeClaim"]["claimName"] in claims
        assert pod.spec["securityContext"]["fsGroup"] == pod.spec["securityContext"]["runAsUser"]
    assert all(Path(out).is_relative_to("/runs") for out in outs)


def _secrets() -> set[tuple[str, str]]:
    """Name and key of each secret that is referred to."""
    used = {(ray_["authOptions"]["secretName"], "auth_token") for ray_ in map(cluster, RAY)}
    for pod in PODS:
        for entry in pod.env.values():
            if reference := entry.get("valueFrom", {}).get("secretKeyRef"):
                used.add((reference["name"], reference["key"]))
    return used


def test_every_secret_is_documented_and_none_is_written_down() -> None:
    page = PAGE.read_text()
    made = dict(re.findall(r"create secret generic (\S+) (.*)", page.replace("\\\n", " ")))
    for name, key in _secrets():
        assert f"{key}=" in made[name] or f"`{key}`" in page, (name, key)
    assert not [name for name, thing in OBJECTS if thing["kind"] == "Secret"]
    for pod in PODS:
        for name, entry in pod.env.items():
            assert "value" not in entry or not re.search("KEY|TOKEN|SECRET|PASSWORD", name), f"{pod}: {name}"
    for path in (*FOLDER.glob("*.yaml"), ROOT / "deploy" / "ray-cluster.yaml"):
        assert not re.search(r"sk-[A-Za-z0-9]|AKIA|stringData|BEGIN [A-Z ]*PRIVATE", path.read_text()), path.name


def test_what_there_is_to_change_is_on_the_page() -> None:
    page = PAGE.read_text()
    for name, thing in OBJECTS:
        assert f"`{name}`" in page, name
        if thing["kind"] in ("PersistentVolumeClaim", "ServiceAccount"):
            assert f"`{thing['metadata']['name']}`" in page
    for path in (*FOLDER.glob("*.yaml"), ROOT / "deploy" / "ray-cluster.yaml"):
        for blank in re.findall(r"\bYOUR-[A-Z0-9-]+", path.read_text()):
            assert f"`{blank}`" in page or path.name == "ray-cluster.yaml", blank


@pytest.mark.parametrize("name", SERVICES)
def test_ports_agree(name: str) -> None:
    port = SERVICES[name]["http_options"]["port"]
    for pod in PODS:
        if pod.owner != name:
            continue
        ports = {entry["name"]: entry["containerPort"] for entry in pod.spec["containers"][0].get("ports", ())}
        assert ports["serve"] == port
        assert pod.role != "head" or (ports["dashboard"], ports["metrics"]) == (8265, 8080)
    assert POLICIES["moot-api"]["ingress"][0]["ports"] == [{"protocol": "TCP", "port": port}]
    urls = [url for path in FOLDER.glob("*.yaml") for url in re.findall(r"http://\S+-serve-svc:\S+", path.read_text())]
    assert {url.split("/v1")[0] for url in urls} == {f"http://moot-llm-serve-svc:{port}"}


def test_policies_cover_every_pod_and_open_nothing_to_the_world() -> None:
    def chosen(policy: dict[str, Any], labels: dict[str, str]) -> bool:
        return dict(policy["podSelector"]["matchLabels"]).items() <= labels.items()

    for pod in PODS:
        labels = pod.template["metadata"]["labels"] | {"ray.io/node-type": "head" if pod.role == "head" else "worker"}
        mine = [name for name, policy in POLICIES.items() if chosen(policy, labels)]
        assert {"moot-pods", "moot-metrics"} <= set(mine), pod
        assert ("moot-api" in mine) == (pod.owner == "moot-api")
        assert ("moot-autoscaler" in mine) == (pod.role == "head")
    assert set(POLICIES["moot-pods"]["policyTypes"]) == {"Ingress", "Egress"}
    for policy in POLICIES.values():
        for rule in policy.get("ingress", ()):
            assert not [peer for peer in rule["from"] if "ipBlock" in peer]
            assert all(peer["namespaceSelector"] for peer in rule["from"] if "namespaceSelector" in peer)
            assert "ports" in rule or rule["from"] == [{"podSelector": policy["podSelector"]}]
        for rule in policy.get("egress", ()):
            wide = [peer for peer in rule["to"] if "ipBlock" in peer]
            assert not wide or {entry["port"] for entry in rule["ports"]} <= {443, 6443}


def test_who_serves_without_a_token_is_reached_from_its_namespace_only() -> None:
    """KubeRay's operator asks for the health of a head's proxy only where the head serves."""
    port = SERVICES["moot-llm"]["http_options"]["port"]
    for policy in POLICIES.values():
        for rule in policy.get("ingress", ()):
            outside = [peer for peer in rule["from"] if "namespaceSelector" in peer]
            assert not outside or port not in {entry["port"] for entry in rule["ports"]}
    services = [thing["spec"] for thing in RAY if thing["kind"] == "RayService"]
    assert all(spec["excludeHeadPodFromServeSvc"] for spec in services)


def test_the_service_is_one_replica_with_time_to_drain() -> None:
    made = ServeConfig(**yaml.safe_load(CONFIGS["moot-serve"]["serve.yaml"]))
    (application,) = SERVICES["moot-api"]["applications"]
    assert application["import_path"] == "moot.deploy.app:app"
    assert [deployment["num_replicas"] for deployment in application["deployments"]] == [1], "a record has one owner"
    spec = next(thing["spec"] for thing in RAY if thing["metadata"]["name"] == "moot-api")
    assert spec["upgradeStrategy"] == {"type": "None"}
    assert made.token_env in {name for pod in PODS if pod.owner == "moot-api" for name in pod.env}


def test_the_service_is_the_application_of_that_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Serve's own, while it is imported
        from ray.serve import Application

        served = import_module("moot.deploy.app").app
    (application,) = SERVICES["moot-api"]["applications"]
    assert isinstance(served, Application)
    assert [one["name"] for one in application["deployments"]] == [served._bound_deployment.name]
    sources = "".join(path.read_text() for path in (ROOT / "deploy").rglob("*.py"))
    pods = [pod for pod in PODS if pod.owner == "moot-api"]
    told = yaml.safe_load(CONFIGS["moot-serve"]["serve.yaml"])["token_env"]
    for name in {name for pod in pods for name in pod.env if name.startswith("MOOT_")} - {told}:
        assert f'"{name}"' in sources, f"nothing reads {name}"


def _fields(file: Path, name: str) -> set[str]:
    """The annotated attributes of a class, read from its source: importing it would need vLLM."""
    (found,) = [
        node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef) and node.name == name
    ]
    return {
        node.target.id for node in found.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def test_the_model_server_is_rays_own() -> None:
    package = Path(ray.__file__).parent
    (application,) = SERVICES["moot-llm"]["applications"]
    module, _, name = application["import_path"].partition(":")
    tree = ast.parse((package.parent / Path(*module.split(".")) / "__init__.py").read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    core = package / "llm" / "_internal" / "serve" / "core"
    assert set(application["args"]) <= _fields(core / "ingress" / "builder.py", "LLMServingArgs")
    (model,) = application["args"]["llm_configs"]
    assert set(model) <= _fields(core / "configs" / "llm_config.py", "LLMConfig")
    assert set(model["model_loading_config"]) <= _fields(core / "configs" / "llm_config.py", "ModelLoadingConfig")
    accelerators = (package / "util" / "accelerators" / "accelerators.py").read_text()
    assert f'"{model["accelerator_type"]}"' in accelerators
    served = model["model_loading_config"]["model_id"]
    names = [n for path in FOLDER.glob("*.yaml") for n in re.findall(r"-serve-svc:\d+/v1#([\w.-]+)", path.read_text())]
    assert set(names) == {served}
    gpus = [pod.spec["containers"][0]["resources"]["limits"] for pod in PODS if str(pod) == "moot-llm/gpu"]
    assert [limits["nvidia.com/gpu"] for limits in gpus] == ["1"]
