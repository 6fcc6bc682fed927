"""The manifests are what KubeRay and Kubernetes take: by KubeRay's own schemas, closed, and by strict models."""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_core import core
from kube_schemas import FILES, documents, faults
from manifests import CONTAINERS, FOLDER, MANIFESTS, OBJECTS, PODS, RAY, Pod, cluster
from pydantic import BaseModel, ValidationError

LLM = "moot-llm"
HELD = {*FILES, "Pod"}
"""The kinds that are held against KubeRay's schemas."""
needs_schemas = pytest.mark.needs("data/kuberay_crds")


@needs_schemas
@pytest.mark.parametrize(
    "thing", [thing for _, thing in OBJECTS if thing["kind"] in HELD], ids=lambda t: t["metadata"]["name"]
)
def test_kuberay_takes_it(thing: dict[str, Any]) -> None:
    assert not faults(thing)


@pytest.mark.parametrize("thing", [thing for _, thing in OBJECTS if thing["kind"] not in HELD], ids=lambda t: t["kind"])
def test_kubernetes_takes_it(thing: dict[str, Any]) -> None:
    assert core(thing).metadata.labels["app.kubernetes.io/part-of"] == "moot"


def _changed(thing: dict[str, Any], path: str, key: str, value: object) -> dict[str, Any]:
    """A copy, sharing no part with another as YAML's anchors do, with one key set at a path of keys and numbers."""
    made: dict[str, Any] = json.loads(json.dumps(thing))
    place: Any = made
    for step in path.split("/") if path else ():
        place = place[int(step) if step.isdigit() else step]
    place[key] = value
    return made


@needs_schemas
@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ("", "sepc", {}),
        ("spec", "backofLimit", 2),
        ("spec", "backoffLimit", "2"),
        ("spec/rayClusterSpec/authOptions", "mode", "tokn"),
        ("spec/rayClusterSpec/authOptions", "secretname", "x"),
        ("spec/rayClusterSpec/headGroupSpec/rayStartParams", "num-cpus", 0),
        ("spec/rayClusterSpec/headGroupSpec/template/spec/containers/0", "imagePullPolcy", "Always"),
        ("spec/rayClusterSpec/headGroupSpec/template/spec/containers/0/securityContext", "readOnlyRootFS", True),
        ("spec/rayClusterSpec/headGroupSpec/template/spec/containers/0/resources", "limits", {"memory": "4 GB"}),
        ("spec/rayClusterSpec/headGroupSpec/template/spec/volumes/0", "emptydir", {}),
        ("spec/rayClusterSpec/workerGroupSpecs/0/template/metadata", "lables", {}),
        ("spec/submitterPodTemplate/spec/containers/0", "volumeMount", []),
    ],
)  # fmt: skip
def test_a_misspelt_key_or_a_wrong_value_is_refused(path: str, key: str, value: object) -> None:
    job = next(thing for thing in RAY if thing["kind"] == "RayJob")
    assert len(faults(_changed(job, path, key, value))) == 1


@needs_schemas
def test_what_may_stand_once_is_refused_twice() -> None:
    job = next(thing for thing in RAY if thing["kind"] == "RayJob")
    head = "spec/rayClusterSpec/headGroupSpec/template/spec/containers/0"
    ports = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["ports"]
    (fault,) = faults(_changed(job, head, "ports", [*ports, ports[0]]))
    assert "6379" in fault


@pytest.mark.parametrize(
    ("kind", "path", "key", "value"),
    [
        ("NetworkPolicy", "spec", "podSelectr", {}),
        ("NetworkPolicy", "spec/ingress/0", "from", []),
        ("NetworkPolicy", "spec/egress/1/ports/0", "port", "53"),
        ("PersistentVolumeClaim", "spec", "accessModes", ["ReadWriteMost"]),
        ("ConfigMap", "data", "run.yaml", {"task": "sample"}),
        ("Namespace", "", "kind", "NameSpace"),
    ],
)
def test_a_fault_in_a_plain_kind_is_refused(kind: str, path: str, key: str, value: object) -> None:
    thing = next(thing for _, thing in OBJECTS if thing["kind"] == kind)
    core(thing)
    with pytest.raises(ValidationError):
        core(_changed(thing, path, key, value))


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text("spec: {a: 1}\nmetadata: {}\nspec: {b: 1}\n")
    with pytest.raises(AssertionError, match="spec"):
        documents(tmp_path / "twice.yaml")


@pytest.mark.parametrize("thing", RAY, ids=lambda thing: thing["metadata"]["name"])
def test_what_the_operator_checks_beyond_its_schema(thing: dict[str, Any]) -> None:
    """Rules that KubeRay's operator has in code: lengths of names, and what may not be said together."""
    ray, spec = cluster(thing), thing["spec"]
    assert len(thing["metadata"]["name"]) <= 47
    assert ray["authOptions"] == {"mode": "token", "secretName": "moot-ray-token"}
    groups = [group["groupName"] for group in ray["workerGroupSpecs"]]
    assert len(set(groups)) == len(groups)
    for group in ray["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        assert "resources" not in group
    if ray.get("enableInTreeAutoscaling"):
        assert ray["autoscalerOptions"]["version"] == "v2"
        mine = [pod for pod in PODS if pod.owner == thing["metadata"]["name"]]
        assert {pod.spec["restartPolicy"] for pod in mine} == {"Never"}
    if thing["kind"] == "RayJob":
        assert spec["shutdownAfterJobFinishes"]
        assert spec["submissionMode"] == "K8sJobMode"
        assert min(spec[key] for key in ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")) > 0


def _unknown(given: dict[str, Any], model: type[BaseModel]) -> set[str]:
    """Keys that a model does not have; Serve would ignore them."""
    return set(given) - set(model.model_fields)


@pytest.mark.parametrize("thing", [t for t in RAY if t["kind"] == "RayService"], ids=lambda t: t["metadata"]["name"])
def test_serve_takes_its_configuration(thing: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, while it is imported
        from ray.serve.schema import ServeApplicationSchema, ServeDeploySchema
    given = yaml.safe_load(thing["spec"]["serveConfigV2"])
    made = ServeDeploySchema.model_validate(given)
    assert not _unknown(given, ServeDeploySchema)
    assert not _unknown(given["http_options"], type(made.http_options))
    for application, read in zip(given["applications"], made.applications, strict=True):
        assert not _unknown(application, ServeApplicationSchema)
        for deployment, inner in zip(application.get("deployments", ()), read.deployments, strict=True):
            assert not _unknown(deployment, type(inner))
            assert not _unknown(deployment["ray_actor_options"], type(inner.ray_actor_options))


@pytest.mark.parametrize(("name", "container", "pod"), CONTAINERS, ids=[name for name, *_ in CONTAINERS])
def test_a_container_may_do_no_more_than_it_must(name: str, container: dict[str, Any], pod: Pod) -> None:
    context = pod.spec["securityContext"] | container["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] > 0
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not {"privileged", "procMount"} & set(context)
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod.spec)
    resources = container["resources"]
    assert set(resources["requests"]) == set(resources["limits"]) >= {"cpu", "memory"}
    if pod.owner == LLM:
        return
    assert context["readOnlyRootFilesystem"] is True
    written = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert written >= {"/tmp", "/home/moot"}


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_a_pod_mounts_what_it_has_and_no_more(pod: Pod) -> None:
    volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", ())}
    assert set(pod.mounts.values()) == set(volumes)
    assert len(volumes) == len(pod.spec.get("volumes", ()))
    for volume in volumes.values():
        (source,) = set(volume) - {"name"}
        assert source in ("emptyDir", "persistentVolumeClaim", "configMap")
        assert source != "emptyDir" or volume["emptyDir"]["sizeLimit"]
    assert pod.autoscaled != (pod.spec.get("automountServiceAccountToken") is False)


@pytest.mark.parametrize("pod", [pod for pod in PODS if pod.start is not None], ids=str)
def test_a_head_runs_no_debates(pod: Pod) -> None:
    assert pod.start is not None
    assert (pod.start.get("num-cpus") == "0") == (pod.role == "head")


def test_the_kustomization_names_what_is_there() -> None:
    (made,) = documents(FOLDER / "kustomization.yaml")
    text = (FOLDER / "kustomization.yaml").read_text()
    named = {name for name in (path.name for path in MANIFESTS) if f"- {name}" in text}
    assert named == {path.name for path in MANIFESTS}, "each is listed, if only as a choice"
    assert set(made["resources"]) <= named
    (image,) = made["images"]
    assert f"{image['newName']}:{image['newTag']}" in {container["image"] for _, container, _ in CONTAINERS}


@pytest.mark.needs("program/kubectl")
def test_the_kustomization_is_built() -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", str(FOLDER)], env={**os.environ, "KUBECONFIG": os.devnull},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    (made,) = documents(FOLDER / "kustomization.yaml")
    assert len(built) == sum(name in made["resources"] for name, _ in OBJECTS)
    assert {thing["metadata"].get("namespace") for thing in built if thing["kind"] != "Namespace"} == {"moot"}
