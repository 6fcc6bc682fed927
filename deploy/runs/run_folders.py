"""Folders of runs: default names, and checks of a folder's content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from moot.actors.record.folder import LOST_RUN_YAML, RunFolder
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.actors.record.store.mirror import Mirror, is_copy
from moot.actors.record.store.store import Store
from moot.actors.record.store.uri import is_uri, local_path
from moot.actors.telemetry.redaction import redact
from moot.protocols.errors import ConfigError

_MAX_MODEL_NAME = 60
"""Maximum length of a model's name in a default folder's name, in characters."""

_BEFORE_RUN_YAML = frozenset(
    {"journal", "parts", "prompts", CLASSIFIER_CARD, "owner.lock", "owner.json", "claims", "epochs.json", "limits.json"}
)
"""Names in the folder of a run that ended before its run.yaml was written."""


def run_name(protocol: str, preset: str | None) -> str:
    """Name of a run in its default folder: its preset or, without one, its protocol."""
    return protocol if preset is None else f"preset-{preset}"


def default_out(protocol: str, task: str, seed: int, model: str = "simulated") -> str:
    """Default folder of a run, the same for the same command.

    >>> default_out("selene", "boolq", 7), default_out("", "boolq", 7, "openai/gpt-4o-mini")
    ('runs/selene-boolq-s7', 'runs/boolq-s7-openai-gpt-4o-mini')
    """
    parts = [part for part in (protocol, task) if part]
    parts += [f"s{seed}"] if model == "simulated" else [f"s{seed}", _shortened(redact(model))]
    return f"runs/{re.sub(r'[^A-Za-z0-9._-]+', '-', '-'.join(parts))}"


def _shortened(name: str) -> str:
    """The name, if it is long truncated and with a hash suffix."""
    return (
        name
        if len(name) <= _MAX_MODEL_NAME
        else f"{name[:_MAX_MODEL_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    )


def run_folder(out: str) -> Path:
    """Absolute path of `out`, a folder where a run exists or can start.

    Raises:
        ConfigError: it is a file or a folder with other content, or its name looks like a URI.
    """
    if "://" not in out and any(":" in name for name in Path(out).parts[:1]):
        raise ConfigError(f"--out {out}: a colon in the first name looks like a URI; give the folder's whole path")
    folder = local_path(out)
    try:
        names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except NotADirectoryError:
        raise ConfigError(f"--out {out}: this is a file; name a folder") from None
    except OSError as error:
        raise ConfigError(f"--out {out}: {(error.strerror or 'cannot be read').lower()}") from None
    if RunFolder(folder).has_lost_run_yaml():
        raise ConfigError(f"--out {out}: {LOST_RUN_YAML}, or name another folder")
    _check_begun(out, (name for name in names if not name.startswith(".run.yaml.")))
    if is_copy(folder):
        raise ConfigError(f"--out {out}: this is the copy of a run in a bucket; name the bucket, or another folder")
    return folder


def check_folder(out: str | Path | None) -> None:
    """Check that a single debate's `out` is a local folder, because its result contains the path.

    Raises:
        ConfigError: it is in a store.
    """
    if out is not None and is_uri(str(out)):
        raise ConfigError(f"out={str(out)!r}: a single debate needs a local folder; `moot.run` also writes to a bucket")


def run_mirror(uri: str) -> Mirror:
    """Local mirror of a URI where a run exists or can start.

    Raises:
        ConfigError: pyarrow does not support the URI, the store is unreachable, or it has other content.
    """
    store = Store.of(uri)
    store.check()
    names = set(store.sizes())
    if "run.yaml" not in names and any(name.startswith(("journal/", "parts/")) for name in names):
        raise ConfigError(f"--out {uri}: {LOST_RUN_YAML}, or name another folder")
    _check_begun(uri, {name.partition("/")[0] for name in names})
    mirror = Mirror(store)
    mirror.pull()
    return mirror


def _check_begun(out: str, names: Iterable[str]) -> None:
    existing = set(names)
    foreign = existing - _BEFORE_RUN_YAML
    if "run.yaml" not in existing and foreign:
        raise ConfigError(f"--out {out}: the folder contains other files and no run ({min(foreign)}); name another one")
