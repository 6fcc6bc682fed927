"""The server as an application that Ray Serve imports: `serve run moot.deploy.app:app`, or in a Serve configuration.

`app` is configured by the YAML file whose path is in the environment variable `MOOT_SERVE_CONFIG`, and offers simulated
debates without it. `build` takes the configuration as arguments instead: `serve run moot.deploy.app:build
config=serve.yaml`, or `args:` in a Serve configuration, which may hold the fields themselves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from moot.deploy.service.deployment import application
from moot.deploy.service.settings import CONFIG_ENV, ServeConfig
from moot.protocols.errors import ConfigError

__all__ = ["app", "build"]


def build(args: Mapping[str, Any]) -> Any:
    """The application for `config`, a YAML file's path, or for the fields of `ServeConfig` themselves.

    Raises:
        ConfigError: one line about what is wrong; both are given, for one.
    """
    fields = dict(args)
    file = fields.pop("config", None)
    if file is not None and fields:
        raise ConfigError(f"`config` names a file that holds everything: leave `{min(fields)}` out, or the file")
    return application(ServeConfig.build(fields if file is None else str(file)))


def _from_environment() -> Any:
    file = os.environ.get(CONFIG_ENV, "")
    return build({"config": file} if file else {})


app = _from_environment()
