"""Server configuration: what is offered, bounds, and authentication."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from moot.actors.models.resolve import EnvName
from moot.actors.record.folder import RunFolder
from moot.actors.record.store.uri import is_uri, local_path
from moot.deploy.runs.checking.check import PROTOCOL as CHECK
from moot.deploy.runs.judge import PROTOCOL as JUDGE
from moot.deploy.runs.judge import rubric_of
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.validation import validate_model
from moot.protocols.errors import ConfigError, MissingKey
from moot.protocols.regular_files import read_regular_text
from moot.protocols.yaml_file import read_keys_and_values

Kind = Literal["debates", "judgments", "checks"]
KINDS: tuple[Kind, ...] = get_args(Kind)

CONFIG_ENV = "MOOT_SERVE_CONFIG"
"""Environment variable with the path of a server's configuration, for `moot.deploy.app:app`."""

_NOT_OF_A_SECTION = frozenset({"task", "limit", "out", "attended", "max_open", "address"})
SHORTEST_TOKEN = 16


class ServeConfig(BaseModel):
    """Configuration of a server; every field has a default.

    Attributes:
        debates: the run behind `POST /v1/debates`: fields of a run's configuration; None disables it.
        judgments: likewise for `POST /v1/judgments`, with `rubric` (default `reasoning`) and `passes` (default 1).
        checks: likewise for `POST /v1/checks`.
        out: folder of the records, with a subfolder for each of the three.
        max_open: maximum concurrent debates, for each of the three.
        max_queued: maximum queued requests beyond them; further ones are refused with 429.
        max_queued_bytes: maximum total size of the bodies of open and queued requests, for each of the three, and of
            all requests that are being read or answered; further ones are refused with 429.
        max_body_bytes: maximum size of a request's body; a larger one is refused with 413.
        drain_s: seconds to drain open debates when the server stops.
        stream_s: maximum seconds of an event stream, after which its reader reconnects; debates continue.
        token_env: environment variable with the token that clients must send as `Authorization: Bearer`.
        token_file: file with the token instead, such as a mounted secret. Without either, only this machine has access.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    debates: dict[str, Any] | None = {}
    judgments: dict[str, Any] | None = None
    checks: dict[str, Any] | None = None
    out: str = Field(default="runs/serve", min_length=1)
    max_open: int = Field(default=200, ge=1)
    max_queued: int = Field(default=1000, ge=0)
    max_queued_bytes: int = Field(default=512 * 2**20, ge=1024)
    max_body_bytes: int = Field(default=32 * 2**20, ge=1024)
    drain_s: float = Field(default=30.0, ge=0, allow_inf_nan=False)
    stream_s: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    token_env: EnvName | None = None
    token_file: str | None = Field(default=None, min_length=1)

    @field_validator("out")
    @classmethod
    def _is_a_folder(cls, out: str) -> str:
        if is_uri(out):
            raise ValueError("a server's records need a local folder: give its path")
        out = str(local_path(out)) if out.lower().startswith("file://") else out
        if RunFolder(Path(out).expanduser()).exists():
            raise ValueError(f"{out} contains a run: use another folder for the server's records")
        return out

    @model_validator(mode="after")
    def _makes_sense(self) -> ServeConfig:
        if all(getattr(self, kind) is None for kind in KINDS):
            raise ValueError(f"nothing is offered: set at least one of {', '.join(KINDS)}")
        if self.token_env is not None and self.token_file is not None:
            raise ValueError("`token_env` and `token_file` both name the token: set only one of them")
        return self

    @classmethod
    def build(
        cls,
        base: ServeConfig | Mapping[str, Any] | str | Path | None = None,
        flags: Mapping[str, Any] | None = None,
        flag_of: Callable[[str], str] = lambda key: "",
    ) -> ServeConfig:
        """Build the configuration from a YAML file or data, overridden by flags; None means not given.

        Raises:
            ConfigError: names the file and the key, or the flag, and what was expected.
        """
        given: dict[str, Any]
        where = ""
        if isinstance(base, ServeConfig):
            given = base.model_dump(exclude_unset=True)
        elif isinstance(base, str | Path):
            given, where = {str(k): v for k, v in read_keys_and_values(Path(base)).items()}, f"{base}: "
        else:
            given = dict(base or {})
        typed = {key: value for key, value in (flags or {}).items() if value is not None}
        config = validate_model(cls, {**given, **typed}, where, typed={key: flag_of(key) for key in typed})
        config.runs(where)
        return config

    def runs(self, where: str = "") -> dict[Kind, RunConfig]:
        """Configuration of each of the server's runs.

        Args:
            where: prefix of an error message.

        Raises:
            ConfigError: names the section and the key.
        """
        found: dict[Kind, RunConfig] = {}
        for kind in KINDS:
            section = getattr(self, kind)
            if section is None:
                continue
            try:
                found[kind] = self._run(kind, dict(section))
            except ConfigError as error:
                raise ConfigError(f"{where}`{kind}`: {error}") from None
        return found

    def _run(self, kind: Kind, section: dict[str, Any]) -> RunConfig:
        for key in section.keys() & _NOT_OF_A_SECTION:
            raise ConfigError(f"`{key}` is not for a server's section")
        if kind != "debates" and "protocol" in section:
            raise ConfigError(f"`protocol` is always {JUDGE if kind == 'judgments' else CHECK}")
        if kind == "judgments":
            rubric, passes = rubric_of(section.pop("rubric", "reasoning")), section.pop("passes", 1)
            section |= {"protocol": JUDGE, "set": {"rubric": rubric.model_dump(mode="json"), "passes": passes}}
        if kind == "checks":
            section["protocol"] = CHECK
        out = str(Path(self.out).expanduser() / kind)
        return RunConfig.build({**section, "out": out, "max_open": self.max_open})

    def read_token(self) -> str | None:
        """Token that clients must send; None when none is configured.

        Raises:
            MissingKey: the configured token is missing or too short.
        """
        if self.token_env is not None:
            return read_token_env(self.token_env)
        if self.token_file is not None:
            named = f"the file {self.token_file}"
            try:
                token = read_regular_text(Path(self.token_file).expanduser())
            except (OSError, UnicodeDecodeError):
                raise MissingKey(f"{named} (the server's token) cannot be read") from None
            return _checked_token(named, token)
        return None


def read_token_env(name: str) -> str:
    """Token in an environment variable.

    Raises:
        MissingKey: it is missing or too short.
    """
    return _checked_token(f"the environment variable {name}", os.environ.get(name, ""))


def _checked_token(named: str, token: str) -> str:
    token = token.strip()
    if not token:
        raise MissingKey(f"{named} (the server's token) is not set")
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise MissingKey(f"{named} (the server's token): expected {SHORTEST_TOKEN} or more letters and digits")
    return token


def is_loopback(host: str) -> bool:
    """Whether a host is a loopback address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
