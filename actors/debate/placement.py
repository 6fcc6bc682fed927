"""Cluster settings of a run: number of processes of each kind, and the resources that each requests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from moot.protocols.errors import ConfigError, unknown_name

Kind = Literal["moderator", "agent", "writer", "limiter"]
"""Kind of actor; judges are agents."""

JOINED_CPUS = 0.1
"""CPUs that each actor requests on a cluster: enough to avoid nodes without CPUs and to be visible to an autoscaler;
few enough that a run fits beside other work."""

HERE = "local"
_CORES_PER_MODERATOR = _CORES_PER_AGENT = 4
"""In the placement `actors` a fourth of the cores run debates, and a fourth each serve agents and judges; the rest is
for writers, Ray and everything else."""


def expand_dotted_keys(given: Mapping[str, Any]) -> dict[str, Any]:
    """Expands dotted keys of `cluster` at their first dot only: a resource's name may contain more.

    >>> expand_dotted_keys({"writers": 2, "num_cpus.agent": 0.5, "resources": {"node:10.0.0.1": 0.1}})
    {'writers': 2, 'num_cpus': {'agent': 0.5}, 'resources': {'node:10.0.0.1': 0.1}}

    Raises:
        ConfigError: a key occurs twice.
    """
    tree: dict[str, Any] = {}
    for key, value in given.items():
        name, dot, rest = str(key).partition(".")
        inner = {rest: value} if dot else value
        known = tree.setdefault(name, {} if isinstance(inner, Mapping) else inner)
        if isinstance(known, dict) and isinstance(inner, Mapping) and not known.keys() & inner.keys():
            known.update(inner)
        elif known is not inner:
            raise ConfigError(f"`{key}` is given twice")
    return tree


def merge_cluster_settings(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two `cluster` settings; `above` wins, key by key, and name by name within `num_cpus` and `resources`."""
    merged, changes = expand_dotted_keys(below), expand_dotted_keys(above)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _as_placing(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    try:
        tree = expand_dotted_keys(value)
        for key in tree.keys() - ClusterSettings.model_fields.keys():
            raise unknown_name("key", key, ClusterSettings.model_fields)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return tree


class ClusterSettings(BaseModel):
    """Cluster settings of a run; they do not affect the record.

    Attributes:
        moderators: processes that run debates. None: 1 on a laptop, a fourth of the cores on a cluster, and one per
            core in the placement `packed`.
        agent_processes: processes of each role on each model, in the placement `actors`. None: 1 on a laptop, a fourth
            of the cores on a cluster, 1 for weights on disk.
        writers: processes that write the record.
        num_cpus: logical CPUs that each process requests, by kind (`moderator`, `agent`, `writer`, `limiter`); by
            default 0 on a laptop and 0.1 on a cluster.
        resources: custom resources that every process requests, which confines the run to nodes that have them.
        strategy: `spread` distributes the processes over the nodes, `default` fills one after another; None spreads
            over several nodes.
        wait_s: seconds to wait for a node that can take a process, while the cluster has none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    set_as_a_whole: ClassVar[bool] = True

    moderators: int | None = Field(default=None, ge=1)
    agent_processes: int | None = Field(default=None, ge=1)
    writers: int = Field(default=1, ge=1)
    num_cpus: dict[Kind, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    resources: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = {}
    strategy: Literal["default", "spread"] | None = None
    wait_s: float = Field(default=300.0, gt=0, allow_inf_nan=False)

    def counts(self, site: ClusterInfo, *, packed: bool, max_open: int) -> tuple[int, int]:
        """Numbers of moderators, and of processes of each service.

        >>> laptop, cluster = ClusterInfo(cores=8, nodes=1), ClusterInfo(cores=32, nodes=4, joined=True)
        >>> [ClusterSettings().counts(site, packed=False, max_open=200) for site in (laptop, cluster)]
        [(1, 1), (8, 8)]
        >>> ClusterSettings().counts(cluster, packed=True, max_open=200)[0]
        32
        >>> ClusterSettings(moderators=9).counts(laptop, packed=True, max_open=4)[0]
        4

        Args:
            site: size of the cluster.
            packed: whether agents live in the moderators.
            max_open: bound on open debates, and so on useful moderators.
        """
        cores = max(1, int(site.cores))
        by_cores = cores if packed else max(1, cores // _CORES_PER_MODERATOR) if site.joined else 1
        agents = max(1, cores // _CORES_PER_AGENT) if site.joined else 1
        return min(self.moderators or by_cores, max_open), min(self.agent_processes or agents, max_open)

    def cpus(self, kind: Kind, site: ClusterInfo) -> float:
        """Logical CPUs that a process of this kind requests."""
        return self.num_cpus.get(kind, JOINED_CPUS if site.joined else 0.0)

    def spreads(self, site: ClusterInfo) -> bool:
        """Whether the processes are spread over the nodes."""
        return site.nodes > 1 if self.strategy is None else self.strategy == "spread"


GivenClusterSettings = Annotated[ClusterSettings, BeforeValidator(_as_placing)]
"""User input: nested, or with dotted keys such as `num_cpus.agent`."""


@dataclass(frozen=True)
class ClusterInfo:
    """Size of the cluster that a run starts on.

    Attributes:
        cores: logical CPUs of all nodes.
        nodes: number of live nodes.
        joined: whether the cluster existed before; False for one machine with a Ray of this process.
    """

    cores: float
    nodes: int
    joined: bool = False


def cluster_address(address: str | None) -> str | None:
    """Address of the cluster to join; None for a local Ray.

    The default is `RAY_ADDRESS`, as in a job of `ray job submit`. An address for clients only, such as the `http://`
    that `ray job submit` itself reads from `RAY_ADDRESS`, names no cluster to join; `local` is Ray's word for one of
    this process.

    Raises:
        ConfigError: the address is `ray://`.
    """
    named = address if address not in (None, "auto") else os.environ.get("RAY_ADDRESS", "").strip()
    if (named or "").startswith("ray://"):
        raise ConfigError(
            f"{'RAY_ADDRESS' if named != address else '--address'} {named}: ray:// is not supported; submit the run to "
            "the cluster with `ray job submit --working-dir . -- moot run ...`"
        )
    if named == HERE:
        return None
    if address is None:
        return named if named and "://" not in named else None
    return address
