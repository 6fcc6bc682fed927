"""What our manifests say, taken apart for the tests: objects, pods, containers, what they refer to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_schemas import FILES, documents

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
MANIFESTS = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")
PAGE = ROOT / "deploy" / "docs" / "kubernetes.md"
OBJECTS = [(path.name, thing) for path in MANIFESTS for thing in documents(path)]
RAY = [thing for _, thing in OBJECTS if thing["kind"] in FILES]
_CLUSTER = {"RayCluster": "", "RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}


def cluster(thing: dict[str, Any]) -> dict[str, Any]:
    """The Ray cluster that an object describes."""
    inner: dict[str, Any] = thing["spec"]
    return inner[_CLUSTER[thing["kind"]]] if _CLUSTER[thing["kind"]] else inner


@dataclass(frozen=True)
class Pod:
    """A pod that an object brings about.

    Attributes:
        owner: the object's name.
        role: `head`, a worker group's name, `submitter`, or `alone` where the object is a pod.
        template: labels and specification.
        start: parameters of `ray start`; none for a submitter.
        autoscaled: whether KubeRay puts the autoscaler into it.
    """

    owner: str
    role: str
    template: dict[str, Any]
    start: dict[str, str] | None
    autoscaled: bool = False

    def __str__(self) -> str:
        """As the tests name it."""
        return f"{self.owner}/{self.role}"

    @property
    def spec(self) -> dict[str, Any]:
        """Its specification."""
        inner: dict[str, Any] = self.template["spec"]
        return inner

    @property
    def env(self) -> dict[str, dict[str, Any]]:
        """The environment of its containers, by name."""
        return {entry["name"]: entry for container in self.spec["containers"] for entry in container.get("env", ())}

    @property
    def mounts(self) -> dict[str, str]:
        """Name of the volume by path, over all containers."""
        return {
            mount["mountPath"]: mount["name"]
            for container in self.spec["containers"]
            for mount in container.get("volumeMounts", ())
        }


def _pods(thing: dict[str, Any]) -> Iterator[Pod]:
    owner, ray = thing["metadata"]["name"], cluster(thing)
    head = ray["headGroupSpec"]
    scaled = bool(ray.get("enableInTreeAutoscaling"))
    yield Pod(owner, "head", head["template"], head["rayStartParams"], scaled)
    for group in ray["workerGroupSpecs"]:
        yield Pod(owner, group["groupName"], group["template"], group["rayStartParams"])
    if "submitterPodTemplate" in thing["spec"]:
        yield Pod(owner, "submitter", thing["spec"]["submitterPodTemplate"], None)


PODS = [pod for thing in RAY for pod in _pods(thing)]
PODS += [Pod(thing["metadata"]["name"], "alone", thing, None) for _, thing in OBJECTS if thing["kind"] == "Pod"]


def containers() -> Iterator[tuple[str, dict[str, Any], Pod]]:
    """Each container of ours, its name for the tests, and its pod; the autoscaler's too, as far as we say how it is."""
    for pod in PODS:
        for container in pod.spec["containers"]:
            yield f"{pod}/{container['name']}", container, pod
    for thing in RAY:
        if options := cluster(thing).get("autoscalerOptions"):
            pod = next(pod for pod in PODS if pod.owner == thing["metadata"]["name"] and pod.role == "head")
            image = pod.spec["containers"][0]["image"]
            yield f"{pod}/autoscaler", {"image": image, **options}, pod


CONTAINERS = list(containers())
