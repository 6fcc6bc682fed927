"""The kinds of Kubernetes itself that our manifests use, as strict models of the parts that they use."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Labels = dict[str, Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$", max_length=63)]]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Metadata(_Strict):
    """What every object of ours says of itself."""

    name: Name
    labels: Labels
    annotations: dict[str, str] = {}


class Namespace(_Strict):
    """A namespace."""

    apiVersion: Literal["v1"]
    kind: Literal["Namespace"]
    metadata: Metadata


class ServiceAccount(_Strict):
    """A service account."""

    apiVersion: Literal["v1"]
    kind: Literal["ServiceAccount"]
    metadata: Metadata
    automountServiceAccountToken: bool


class ConfigMap(_Strict):
    """A configuration map."""

    apiVersion: Literal["v1"]
    kind: Literal["ConfigMap"]
    metadata: Metadata
    data: dict[str, str]


class Requests(_Strict):
    """How much a claim asks for."""

    storage: Annotated[str, Field(pattern=r"^\d+(Gi|Ti)$")]


class Resources(_Strict):
    """What a claim asks for."""

    requests: Requests


class ClaimSpec(_Strict):
    """What kind of volume a claim asks for."""

    accessModes: list[Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]]
    storageClassName: str
    resources: Resources


class PersistentVolumeClaim(_Strict):
    """A claim of a volume."""

    apiVersion: Literal["v1"]
    kind: Literal["PersistentVolumeClaim"]
    metadata: Metadata
    spec: ClaimSpec


class Selector(_Strict):
    """Which pods or namespaces; without labels, all."""

    matchLabels: Labels = {}


class Block(_Strict):
    """Addresses."""

    cidr: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+\.\d+/\d+$")]
    exclude: Annotated[list[str], Field(alias="except")] = []


class Peer(_Strict):
    """Who may be reached, or reach."""

    podSelector: Selector | None = None
    namespaceSelector: Selector | None = None
    ipBlock: Block | None = None


class Port(_Strict):
    """A port."""

    protocol: Literal["TCP", "UDP"]
    port: Annotated[int, Field(gt=0, lt=65536)]


class Ingress(_Strict):
    """Who may reach the pods, on which ports; without ports, on all."""

    peers: Annotated[list[Peer], Field(alias="from", min_length=1)]
    ports: Annotated[list[Port], Field(min_length=1)] | None = None


class Egress(_Strict):
    """Whom the pods may reach, on which ports; without ports, on all."""

    to: Annotated[list[Peer], Field(min_length=1)]
    ports: Annotated[list[Port], Field(min_length=1)] | None = None


class PolicySpec(_Strict):
    """Which pods a policy is of, and what it allows."""

    podSelector: Selector
    policyTypes: list[Literal["Ingress", "Egress"]]
    ingress: list[Ingress] = []
    egress: list[Egress] = []


class NetworkPolicy(_Strict):
    """What pods may reach and be reached by."""

    apiVersion: Literal["networking.k8s.io/v1"]
    kind: Literal["NetworkPolicy"]
    metadata: Metadata
    spec: PolicySpec


Kind = Namespace | ServiceAccount | ConfigMap | PersistentVolumeClaim | NetworkPolicy
_KIND: TypeAdapter[Kind] = TypeAdapter(Annotated[Kind, Field(discriminator="kind")])


def core(thing: Any) -> Kind:
    """An object of Kubernetes itself; an unknown kind or key raises `pydantic.ValidationError`."""
    return _KIND.validate_python(thing)
