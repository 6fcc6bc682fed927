"""Where a run's folder lies: the default name, and whether a run can lie or begin in a folder."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from moot.actors.models.api_key import redact
from moot.protocols.errors import ConfigError

_LONGEST = 60
"""Characters of a model's name that the default folder is called by."""

_STARTED_ONLY = frozenset({"journal", "parts", "owner.lock", "epochs.json", "limits.json"})


def default_out(protocol: str, task: str, seed: int, model: str = "simulated") -> str:
    """Where a run goes unless it is told: the same command finds the same folder again.

    >>> default_out("selene", "boolq", 7), default_out("", "boolq", 7, "openai/gpt-4o-mini")
    ('runs/selene-boolq-s7', 'runs/boolq-s7-openai-gpt-4o-mini')
    """
    parts = [part for part in (protocol, task) if part]
    parts += [f"s{seed}"] if model == "simulated" else [f"s{seed}", _shortened(redact(model))]
    return f"runs/{re.sub(r'[^A-Za-z0-9._-]+', '-', '-'.join(parts))}"


def _shortened(name: str) -> str:
    """A name that a folder's can hold; a long one is told apart from others by its hash."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def run_folder(out: str) -> Path:
    """`out` as an absolute path, if a run can lie or begin there.

    Raises:
        ConfigError: a file is there, or a folder with other things in it.
    """
    folder = Path(out).expanduser().absolute()
    try:
        names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except NotADirectoryError:
        raise ConfigError(f"--out {out}: a file is there, a folder is needed") from None
    except OSError as error:
        raise ConfigError(f"--out {out}: {(error.strerror or 'cannot be read').lower()}") from None
    foreign = {name for name in names if not name.startswith(".run.yaml.")} - _STARTED_ONLY
    if "run.yaml" not in names and foreign:
        raise ConfigError(f"--out {out}: the folder holds no run but other files ({min(foreign)}); name another one")
    return folder
