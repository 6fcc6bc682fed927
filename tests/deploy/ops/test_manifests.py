"""The manifests: KubeRay's and Kubernetes' schemas take them, they want no needless rights, and fit the code."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import ray
import typer
import yaml
from doc_pages import page_named
from jsonschema import Draft202012Validator
from places import ROOT
from typer.testing import CliRunner

from moot.actors.debate.placement import ClusterInfo
from moot.deploy.cli.main import app
from moot.deploy.runs.flag_parsers import parse_settings
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.service.settings import CONFIG_ENV, ServeConfig

FOLDER = ROOT / "deploy" / "ops" / "kubernetes"
PAGE = page_named("cluster").read_text().partition("\n## Kubernetes\n")[2]
SCHEMAS = ROOT.parent / "shared" / "data" / "kuberay_crds"
FILES = {"RayCluster": "ray.io_rayclusters", "RayJob": "ray.io_rayjobs", "RayService": "ray.io_rayservices"}
CLUSTERS = {"RayCluster": (), "RayJob": ("rayClusterSpec",), "RayService": ("rayClusterConfig",)}
IMAGE = f"registry.example.com/moot:{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}"
OBJECTS = [thing for path in sorted(FOLDER.glob("*.yaml")) for thing in yaml.safe_load_all(path.read_text())]
RAY = [thing for thing in OBJECTS if thing["kind"] in FILES]
POLICIES = {thing["metadata"]["name"]: thing["spec"] for thing in OBJECTS if thing["kind"] == "NetworkPolicy"}
NAMED = {thing["metadata"]["name"]: thing for thing in OBJECTS if thing["kind"] != "NetworkPolicy"}
JOB, SERVICE = NAMED["moot-batch"], NAMED["moot-api"]
SERVED = yaml.safe_load(SERVICE["spec"]["serveConfigV2"])

needs_schemas = pytest.mark.needs("data/kuberay_crds")
every_ray = pytest.mark.parametrize("thing", RAY, ids=lambda thing: thing["metadata"]["name"])


def cluster(thing: Mapping[str, Any]) -> dict[str, Any]:
    """The Ray cluster that an object describes."""
    inner = thing["spec"]
    for key in CLUSTERS[thing["kind"]]:
        inner = inner[key]
    return dict(inner)


def pods(thing: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, str] | None]]:
    """The pods of an object: role, template, and the parameters of `ray start` (None for a submitter)."""
    described = cluster(thing)
    yield "head", described["headGroupSpec"]["template"], described["headGroupSpec"]["rayStartParams"]
    for group in described["workerGroupSpecs"]:
        yield group["groupName"], group["template"], group["rayStartParams"]
    if "submitterPodTemplate" in thing["spec"]:
        yield "submitter", thing["spec"]["submitterPodTemplate"], None


PODS = [(thing["metadata"]["name"], *pod) for thing in RAY for pod in pods(thing)]
every_pod = pytest.mark.parametrize(
    ("owner", "role", "template", "start"), PODS, ids=[f"{owner}-{role}" for owner, role, *_ in PODS]
)


def closed(schema: Mapping[str, Any], *, top: bool = False) -> dict[str, Any]:
    """A structural schema in which an unknown key is an error; `top`: the object's own, without its `metadata`."""
    made = {key: value for key, value in schema.items() if key != "nullable"}
    if "items" in schema:
        made["items"] = closed(schema["items"])
    if isinstance(schema.get("additionalProperties"), Mapping):
        made["additionalProperties"] = closed(schema["additionalProperties"])
    made["properties"] = {name: closed(inner) for name, inner in schema.get("properties", {}).items()}
    if top:
        made["properties"]["metadata"] = {"type": "object"}
    if schema.get("type") == "object" and not {"additionalProperties", "x-kubernetes-preserve-unknown-fields"} & set(
        schema
    ):
        made["additionalProperties"] = False
    if schema.get("nullable") and "type" in made:
        made["type"] = [made["type"], "null"]
    return made


@cache
def _validator(kind: str) -> Draft202012Validator:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    definition = yaml.load((SCHEMAS / f"{FILES[kind]}.yaml").read_text("utf-8"), Loader=loader)["spec"]
    (schema,) = [found["schema"]["openAPIV3Schema"] for found in definition["versions"] if found["name"] == "v1"]
    return Draft202012Validator(closed(schema, top=True))


def _changed(thing: Mapping[str, Any], path: str, key: str, value: object) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(thing))
    place: Any = made
    for step in path.split("/"):
        place = place[int(step) if step.isdigit() else step]
    place[key] = value
    return made


@needs_schemas
@every_ray
def test_kuberay_takes_it(thing: dict[str, Any]) -> None:
    assert thing["apiVersion"] == "ray.io/v1"
    assert not [f"{error.json_path}: {error.message[:200]}" for error in _validator(thing["kind"]).iter_errors(thing)]


@needs_schemas
@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ("spec/rayClusterSpec/authOptions", "mode", "tokn"),
        ("spec/rayClusterSpec/headGroupSpec/template/spec/containers/0/securityContext", "readOnlyRootFS", True),
    ],
)
def test_a_misspelt_key_or_a_wrong_value_is_refused(path: str, key: str, value: object) -> None:
    assert len(list(_validator("RayJob").iter_errors(_changed(JOB, path, key, value)))) == 1


@pytest.mark.parametrize("thing", [thing for thing in OBJECTS if thing not in RAY], ids=lambda t: t["metadata"]["name"])
def test_kubernetes_takes_it(thing: dict[str, Any]) -> None:
    kubernetes_validate.validate(thing, "1.33", strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(_changed(thing, "metadata", "lables", {}), "1.33", strict=True)


@every_ray
def test_what_the_operator_checks_beyond_its_schema(thing: dict[str, Any]) -> None:
    described, spec = cluster(thing), thing["spec"]
    assert len(thing["metadata"]["name"]) <= 47
    assert described["rayVersion"] == ray.__version__
    assert described["authOptions"] == {"mode": "token", "secretName": "moot-ray-token"}
    for group in described["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    if described.get("enableInTreeAutoscaling"):
        assert described["autoscalerOptions"]["version"] == "v2"
        assert {template["spec"]["restartPolicy"] for _, template, _ in pods(thing)} == {"Never"}
    if thing["kind"] == "RayJob":
        assert (spec["shutdownAfterJobFinishes"], spec["submissionMode"]) == (True, "K8sJobMode")
        assert min(spec[key] for key in ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")) > 0


@every_pod
def test_a_pod_may_do_no_more_than_it_must(
    owner: str, role: str, template: dict[str, Any], start: dict[str, str] | None
) -> None:
    spec = template["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    autoscaled = owner == "moot-cluster" and role == "head"
    assert (spec.get("automountServiceAccountToken") is False) != autoscaled
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert start is None or (start.get("num-cpus") == "0") == (role == "head"), "a head runs no debates"
    for volume in volumes.values():
        assert set(volume) - {"name"} <= {"emptyDir", "persistentVolumeClaim", "configMap"}
        assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"]
    containers = list(spec["containers"])
    if autoscaled:
        containers.append({"image": IMAGE} | cluster(NAMED[owner])["autoscalerOptions"])
    for container in containers:
        context = spec["securityContext"] | container["securityContext"]
        assert container["image"] == IMAGE
        assert (context["runAsNonRoot"], context["runAsUser"], context["runAsGroup"]) == (True, 10001, 10001)
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "procMount"} & set(context)
        assert set(container["resources"]["requests"]) == set(container["resources"]["limits"]) == {"cpu", "memory"}
        assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {"/tmp", "/home/moot"}
        assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)


@every_pod
def test_a_record_outlives_its_cluster(owner: str, role: str, template: dict[str, Any], start: object) -> None:
    if start is None:
        return
    claimed = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in template["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    }
    mounts = {mount["mountPath"]: mount["name"] for mount in template["spec"]["containers"][0]["volumeMounts"]}
    assert NAMED[claimed[mounts["/runs"]]]["kind"] == "PersistentVolumeClaim"
    assert template["spec"]["securityContext"]["fsGroup"] == 10001
    assert _parsed(JOB["spec"]["entrypoint"])["out"].startswith("/runs/")
    assert yaml.safe_load(NAMED["moot-serve"]["data"]["serve.yaml"])["out"].startswith("/runs/")


def _parsed(command: str) -> dict[str, Any]:
    """The options of a `moot` command, by our own command line; what it does not know raises."""
    name, *words = shlex.split(command)
    assert name == "moot"
    group = typer.main.get_command(app)
    made: dict[str, Any] = group.commands[words[0]].make_context(words[0], words[1:]).params  # type: ignore[attr-defined]
    return made


def test_the_job_runs_a_command_of_ours_with_a_configuration_that_is_taken(tmp_path: Path) -> None:
    given = _parsed(JOB["spec"]["entrypoint"])
    assert given["address"] == "auto"
    file = tmp_path / given["file"].name
    file.write_text(NAMED["moot-run"]["data"][file.name])
    done = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "run"), "--dry-run"])
    assert done.exit_code == 0, done.output


def test_the_standing_cluster_grows_for_the_command_of_the_page() -> None:
    """An autoscaler adds workers for what does not fit on those of the start; a run waits until it is placed."""
    (group,) = NAMED["moot-cluster"]["spec"]["workerGroupSpecs"]
    cores = float(group["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"])
    (command,) = re.findall(r"job submit .* -- (moot .*)$", PAGE, re.MULTILINE)
    given = _parsed(command)
    cluster_settings = RunConfig.model_validate({"cluster": parse_settings(given["cluster"])}).cluster
    site = ClusterInfo(cores=cores * group["minReplicas"], nodes=1 + group["minReplicas"], joined=True)
    moderators, _ = cluster_settings.counts(site, packed=given["placement"] == "packed", max_open=200)
    asked = moderators * cluster_settings.cpus("moderator", site)
    others = cluster_settings.writers * cluster_settings.cpus("writer", site) + cluster_settings.cpus("limiter", site)
    assert 2 * site.cores < asked + others < cores * group["maxReplicas"]


def test_every_secret_is_documented_and_none_is_written_down() -> None:
    made = dict(re.findall(r"create secret generic (\S+) (.*)", PAGE.replace("\\\n", " ")))
    used = {("moot-ray-token", "auth_token")}
    for _, _, template, _ in PODS:
        for entry in (entry for one in template["spec"]["containers"] for entry in one.get("env", ())):
            if reference := entry.get("valueFrom", {}).get("secretKeyRef"):
                used.add((reference["name"], reference["key"]))
            assert "value" not in entry or not re.search("KEY|TOKEN|SECRET|PASSWORD", entry["name"])
    for name, key in used:
        assert f"{key}=" in made[name] or f"`{key}`" in PAGE, (name, key)
    assert not [thing for thing in OBJECTS if thing["kind"] == "Secret"]
    for path in (*FOLDER.glob("*.yaml"), ROOT / "deploy" / "ops" / "ray-cluster.yaml"):
        assert not re.search(r"sk-[A-Za-z0-9]|AKIA|stringData|BEGIN [A-Z ]*PRIVATE", path.read_text()), path.name


def test_policies_cover_every_pod_and_open_nothing_to_the_world() -> None:
    for owner, role, template, _ in PODS:
        labels = template["metadata"]["labels"] | {"ray.io/node-type": "head" if role == "head" else "worker"}
        mine = {
            name
            for name, policy in POLICIES.items()
            if dict(policy["podSelector"]["matchLabels"]).items() <= labels.items()
        }
        assert mine >= {"moot-pods", "moot-metrics"}
        assert ("moot-api" in mine) == (owner == "moot-api")
        assert ("moot-autoscaler" in mine) == (role == "head")
    assert set(POLICIES["moot-pods"]["policyTypes"]) == {"Ingress", "Egress"}
    for policy in POLICIES.values():
        for rule in policy.get("ingress", ()):
            assert not [peer for peer in rule["from"] if "ipBlock" in peer]
            assert all(peer["namespaceSelector"] for peer in rule["from"] if "namespaceSelector" in peer)
            assert "ports" in rule or rule["from"] == [{"podSelector": policy["podSelector"]}]
        for rule in policy.get("egress", ()):
            wide = [peer for peer in rule["to"] if "ipBlock" in peer]
            assert not wide or {entry["port"] for entry in rule["ports"]} <= {443, 6443}


def test_the_service_is_the_application_of_that_name_on_that_port() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Serve's own, while it is imported
        from ray.serve.schema import ServeDeploySchema

        made = ServeDeploySchema.model_validate(SERVED)
        served = import_module("moot.deploy.app").app
    assert not set(SERVED) - set(ServeDeploySchema.model_fields)
    (application,) = SERVED["applications"]
    assert set(application) <= set(type(made.applications[0]).model_fields)
    assert application["import_path"] == "moot.deploy.app:app"
    (deployment,) = application["deployments"]
    assert deployment["name"] == served._bound_deployment.name
    assert deployment["num_replicas"] == 1, "a record has one owner"
    assert SERVICE["spec"]["upgradeStrategy"] == {"type": "None"}
    port = SERVED["http_options"]["port"]
    assert POLICIES["moot-api"]["ingress"][0]["ports"] == [{"protocol": "TCP", "port": port}]
    config = ServeConfig(**yaml.safe_load(NAMED["moot-serve"]["data"]["serve.yaml"]))
    for _, template, _ in pods(SERVICE):
        (container,) = template["spec"]["containers"]
        assert {entry["name"]: entry["containerPort"] for entry in container["ports"]}["serve"] == port
        assert {CONFIG_ENV, config.token_env} <= {entry["name"] for entry in container["env"]}
