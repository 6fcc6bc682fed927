"""Run folders: the default name, and checks of a folder's content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from moot.actors.classifiers.card import CARD
from moot.actors.record.store.mirror import Mirror, is_copy
from moot.actors.record.store.store import Store
from moot.actors.record.store.uri import is_uri, local_path
from moot.actors.telemetry.redaction import redact
from moot.protocols.errors import ConfigError

_LONGEST = 60
"""Maximum characters of a model's name in the default folder's name."""

_STARTED_ONLY = frozenset(
    {"journal", "parts", "prompts", CARD, "owner.lock", "owner.json", "claims", "epochs.json", "limits.json"}
)


def run_name(protocol: str, preset: str | None) -> str:
    """Name for the default folder: the preset, which is more specific, or the protocol."""
    return protocol if preset is None else f"preset-{preset}"


def default_out(protocol: str, task: str, seed: int, model: str = "simulated") -> str:
    """Default folder of a run: the same command finds the same folder again.

    >>> default_out("selene", "boolq", 7), default_out("", "boolq", 7, "openai/gpt-4o-mini")
    ('runs/selene-boolq-s7', 'runs/boolq-s7-openai-gpt-4o-mini')
    """
    parts = [part for part in (protocol, task) if part]
    parts += [f"s{seed}"] if model == "simulated" else [f"s{seed}", _shortened(redact(model))]
    return f"runs/{re.sub(r'[^A-Za-z0-9._-]+', '-', '-'.join(parts))}"


def _shortened(name: str) -> str:
    """Shorten a name for a folder; a long one gets a hash suffix."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def run_folder(out: str) -> Path:
    """`out` as an absolute path, if a run exists or can start there.

    Raises:
        ConfigError: it is a file or a folder with other content, or its name looks like a URI.
    """
    if "://" not in out and any(":" in name for name in Path(out).parts[:1]):
        raise ConfigError(f"--out {out}: a colon in the first name reads as a URI; give the folder's whole path")
    folder = local_path(out)
    try:
        names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except NotADirectoryError:
        raise ConfigError(f"--out {out}: a file is there, a folder is needed") from None
    except OSError as error:
        raise ConfigError(f"--out {out}: {(error.strerror or 'cannot be read').lower()}") from None
    _check_begun(out, (name for name in names if not name.startswith(".run.yaml.")))
    if is_copy(folder):
        raise ConfigError(f"--out {out}: the copy of a run in a bucket; name the bucket, or another folder")
    return folder


def check_folder(out: str | Path | None) -> None:
    """Check that a single debate's `out` is a local folder, because its result contains the path.

    Raises:
        ConfigError: it is in a store.
    """
    if out is not None and is_uri(str(out)):
        raise ConfigError(f"out={str(out)!r}: a single debate is kept in a folder; a run in a bucket is for `moot.run`")


def run_mirror(uri: str) -> Mirror:
    """Local mirror of a URI, if a run exists or can start there.

    Raises:
        ConfigError: pyarrow does not support the URI, the store is unreachable, or it has other content.
    """
    store = Store.of(uri)
    store.check()
    _check_begun(uri, {name.partition("/")[0] for name in store.sizes()})
    mirror = Mirror(store)
    mirror.pull()
    return mirror


def _check_begun(out: str, names: Iterable[str]) -> None:
    found = set(names)
    foreign = found - _STARTED_ONLY
    if "run.yaml" not in found and foreign:
        raise ConfigError(f"--out {out}: the folder holds no run but other files ({min(foreign)}); name another one")
