"""Options of `moot simulate`."""

from __future__ import annotations

import ipaddress
import os
from contextlib import suppress
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from moot.actors.simulated.settings import SimulatedSettings
from moot.protocols.errors import ConfigError, MissingKey

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Milliseconds = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class SimulateOptions(BaseModel):
    """Options of the simulated server: address, model behaviour, and injected faults.

    Attributes:
        port: 0 picks a free one.
        host: only this machine by default; any other requires `token_env`.
        token_env: environment variable with the token that clients must send as `Authorization: Bearer`.
        seed: of the simulated model, the faults and the latencies.
        settings: of the simulated model.
        latency_ms, jitter_ms: latency of a reply: the first plus a uniform share of the second.
        fail_rate: share of calls answered with 500; drawn again for each attempt at a step.
        rate_limit: calls per minute, spread over its seconds; further calls get 429 with `Retry-After`, and the headers
            of every response state what is left. None for no limit.
        garble_rate: share of replies whose JSON is truncated or malformed.
        busy_rate: share of calls answered with 429 whatever the rate limit; drawn for each attempt, like the next two.
        cut_rate: share of calls whose connection is closed in the middle of the response body.
        hang_rate: share of calls that are accepted and never answered.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    port: int = Field(default=0, ge=0, le=65535)
    host: str = "127.0.0.1"
    token_env: str | None = None
    seed: int = 0
    settings: SimulatedSettings = SimulatedSettings()
    latency_ms: Milliseconds = 0.0
    jitter_ms: Milliseconds = 0.0
    fail_rate: Share = 0.0
    rate_limit: float | None = Field(default=None, gt=0.0)
    garble_rate: Share = 0.0
    busy_rate: Share = 0.0
    cut_rate: Share = 0.0
    hang_rate: Share = 0.0

    @model_validator(mode="after")
    def _others_need_a_token(self) -> SimulateOptions:
        with suppress(ValueError):
            if self.token_env or self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback:
                return self
        raise ConfigError(f"--host {self.host} is reachable by others: it needs --token-env")

    def read_token(self) -> str | None:
        """Bearer token that clients must send; None when none is required.

        Raises:
            MissingKey: the variable is named but not set.
        """
        if self.token_env is None:
            return None
        token = os.environ.get(self.token_env, "")
        if not token:
            raise MissingKey(f"the environment variable {self.token_env} (the server's token) is not set")
        return token
