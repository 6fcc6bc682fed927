"""What `moot simulate` can be told."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field

from moot.actors.models.simulated.model import SimulatedSettings
from moot.protocols.errors import ConfigError, MissingKey


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """What the server listens on, how its model behaves, and how it misbehaves.

    Attributes:
        port: 0 takes a free one.
        host: only this machine, unless told otherwise; then `token_env` is needed.
        token_env: environment variable with the token that clients must send as `Authorization: Bearer` or `x-api-key`.
        seed: the run's seed; replies, failures and waiting times hang on it.
        settings: of the simulated model.
        latency_ms, jitter_ms: every reply waits the first plus a uniform share of the second.
        fail_rate: share of calls answered with 500, in [0, 1]; drawn anew for each attempt at a step.
        rate_limit: calls per minute, spread over its seconds; more get 429 with `Retry-After`, and the headers of every
            response say what is left. None for no limit.
        garble_rate: share of replies whose own JSON is torn or broken, in [0, 1].
        busy_rate: share of calls answered with 429 whatever the rate limit, in [0, 1]; so for the next two.
        cut_rate: share of calls whose reply is cut off in the middle of its body, by closing the connection.
        hang_rate: share of calls that are accepted and never answered.

    Raises:
        ConfigError: for a value out of range, or a host for others without `token_env`.
    """

    port: int = 0
    host: str = "127.0.0.1"
    token_env: str | None = None
    seed: int = 0
    settings: SimulatedSettings = field(default_factory=SimulatedSettings)
    latency_ms: float = 0.0
    jitter_ms: float = 0.0
    fail_rate: float = 0.0
    rate_limit: float | None = None
    garble_rate: float = 0.0
    busy_rate: float = 0.0
    cut_rate: float = 0.0
    hang_rate: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"--port {self.port} is not in [0, 65535]")
        for name in ("fail_rate", "garble_rate", "busy_rate", "cut_rate", "hang_rate"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{_flag(name)} {getattr(self, name)} is not in [0, 1]")
        for name in ("latency_ms", "jitter_ms"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{_flag(name)} {getattr(self, name)} is not a time of 0 ms or more")
        if self.rate_limit is not None and not self.rate_limit > 0.0:
            raise ConfigError(f"--rate-limit {self.rate_limit} is not above 0 calls per minute")
        if not (self.token_env or _is_loopback(self.host)):
            raise ConfigError(f"--host {self.host} is open to others: name the token's variable with --token-env")

    def read_token(self) -> str | None:
        """The token that clients must send; None when none is needed.

        Raises:
            MissingKey: the variable is named but not set.
        """
        if self.token_env is None:
            return None
        token = os.environ.get(self.token_env, "")
        if not token:
            raise MissingKey(f"the environment variable {self.token_env} (the server's token) is not set")
        return token


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
