"""KubeRay's own schemas, closed: what the API server would only warn of or drop, a misspelt key, is an error here.

A structural schema is OpenAPI v3 with Kubernetes' marks. jsonschema knows the rest; `nullable` and
`x-kubernetes-list-map-keys` are carried out here. Rules in CEL (`x-kubernetes-validations`) are not: nothing here can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "kuberay_crds"
FILES = {"RayCluster": "ray.io_rayclusters", "RayJob": "ray.io_rayjobs", "RayService": "ray.io_rayservices"}

_OPEN = "x-kubernetes-preserve-unknown-fields"
_KEYS = "x-kubernetes-list-map-keys"


class _OneOfEach(yaml.SafeLoader):
    """Refuses a key that stands twice in a mapping, as the API server does."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a node."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        assert not twice, f"{sorted(twice)} twice in one mapping, line {node.start_mark.line + 1}"
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects of a manifest, in order."""
    return list(yaml.load_all(path.read_text("utf-8"), Loader=_OneOfEach))


def closed(schema: Mapping[str, Any], *, top: bool = False) -> dict[str, Any]:
    """A structural schema in jsonschema's words, in which an unknown key is an error.

    Args:
        schema: a structural schema.
        top: whether it is the object's own, whose `metadata` Kubernetes knows without the schema.
    """
    made = {key: value for key, value in schema.items() if key != "nullable"}
    if "items" in schema:
        made["items"] = closed(schema["items"])
    if isinstance(schema.get("additionalProperties"), Mapping):
        made["additionalProperties"] = closed(schema["additionalProperties"])
    properties = schema.get("properties", {})
    made["properties"] = {name: closed(inner) for name, inner in properties.items()}
    if top:
        made["properties"]["metadata"] = {"type": "object"}
    is_open = schema.get(_OPEN) or "additionalProperties" in schema
    if schema.get("type") == "object" and not is_open:
        made["additionalProperties"] = False
    if schema.get("nullable") and "type" in made:
        made["type"] = [made["type"], "null"]
    return made


def _once(validator: Any, keys: list[str], items: Any, schema: Any) -> Iterator[ValidationError]:
    named = [tuple(item.get(key) for key in keys) for item in items if isinstance(item, Mapping)]
    if twice := sorted({str(name) for name in named if named.count(name) > 1}):
        yield ValidationError(f"{keys} twice: {', '.join(twice)}")


_Structural = validators.extend(Draft202012Validator, {_KEYS: _once})


@cache
def _validator(kind: str, version: str) -> Any:
    if kind == "Pod":
        assert version == "v1"
        cluster = _validator("RayCluster", "ray.io/v1").schema["properties"]["spec"]["properties"]
        template = cluster["headGroupSpec"]["properties"]["template"]
        plain = {name: {"type": "string"} for name in ("apiVersion", "kind")}
        return _Structural({**template, "properties": {**template["properties"], **plain}})
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    crd = yaml.load((DATA / f"{FILES[kind]}.yaml").read_text("utf-8"), Loader=loader)
    assert crd["spec"]["names"]["kind"] == kind
    (schema,) = [
        found["schema"]["openAPIV3Schema"]
        for found in crd["spec"]["versions"]
        if found["served"] and f"{crd['spec']['group']}/{found['name']}" == version
    ]
    return _Structural(closed(schema, top=True))


def faults(thing: Mapping[str, Any]) -> list[str]:
    """What KubeRay's schema finds wrong with an object, each with its place; of a pod, what it would of a head's."""
    errors = _validator(thing["kind"], thing["apiVersion"]).iter_errors(thing)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]
