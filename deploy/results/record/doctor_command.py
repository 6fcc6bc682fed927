"""The `moot doctor` command for a model of a run, as a warning or a refusal advises it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def doctor_command(member: Mapping[str, Any], configuration: Mapping[str, Any]) -> str:
    """Command that examines a model under a protocol and its settings.

    Args:
        member: fields of a role's binding.
        configuration: fields of a run's configuration; without a protocol the model alone is examined.

    >>> member = {"model": "http://127.0.0.1:8000/v1#m", "api_key_env": "KEY"}
    >>> doctor_command(member, {"protocol": "evince", "set": {"agents": 2}})
    "moot doctor --model 'http://127.0.0.1:8000/v1#m' --api-key-env KEY --protocol evince --set agents=2"
    """
    given = {
        "--model": member.get("model"),
        "--api-key-env": member.get("api_key_env"),
        "--base-url": member.get("base_url"),
        "--protocol": configuration.get("protocol"),
        "--preset": configuration.get("preset"),
    }
    words = [word for flag, value in given.items() if value is not None for word in (flag, str(value))]
    settings = dict(configuration.get("set") or {})
    if configuration.get("agents") is not None:
        settings["agents"] = configuration["agents"]
    for key, value in settings.items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(["moot", "doctor", *words])
