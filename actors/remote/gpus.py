"""How the GPUs of a cluster are shared between the processes that hold weights."""

from __future__ import annotations

import math

from moot.actors.household import Service, services
from moot.actors.models.resolve import ModelSpec
from moot.actors.roles import Roles


def weight_owners(roles: Roles) -> set[Service]:
    """The services whose actor holds the weights of its model."""
    bindings = services(roles).items()
    return {service for service, binding in bindings if ModelSpec.parse(binding.model).kind == "local"}


def gpu_share(gpus: float, processes: int) -> float:
    """What each of the processes asks Ray for: a whole GPU, or as much of one as lets all of them be placed.

    >>> gpu_share(4, 2), gpu_share(1, 2), gpu_share(2, 3), gpu_share(0, 2)
    (1.0, 0.5, 0.5, 0.0)
    """
    whole = math.floor(gpus)
    if not (whole and processes):
        return 0.0
    # Rounded down to Ray's own grain: three thirds must not be more than one.
    return math.floor(1e4 / math.ceil(processes / whole)) / 1e4
