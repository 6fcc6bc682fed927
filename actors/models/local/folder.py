"""Checks of a model's folder, without loading anything."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from moot.protocols.errors import ConfigError

NEEDED = ("torch", "transformers", "safetensors", "llguidance")
"""Packages of the extra `local`."""

_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")

_ADDRESS = re.compile(r"(?:^|/)[A-Za-z][\w+.-]+:/")
"""A web address, even where it was parsed as a relative path."""


def require_extra() -> None:
    """Raise `ConfigError` unless the extra `local` is installed; imports nothing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(f"local/PATH needs {missing[0]}, which is not installed: pip install 'moot[local]'")


def model_folder(path: str) -> Path:
    """Absolute folder of weights at `path`; `~` is the user's home.

    Raises:
        ConfigError: the path is an address, does not exist, is no model folder, or has no weights in the safetensors
            format.
    """
    if _ADDRESS.search(path):  # it is not repeated: it may contain a password
        raise ConfigError("model 'local/ADDRESS': name a folder of weights on this machine")
    try:
        folder = Path(path).expanduser().absolute()
        found = {child.name for child in folder.iterdir()}
    except NotADirectoryError:
        raise ConfigError(f"model 'local/{path}': a file is there; name the folder that holds config.json") from None
    except FileNotFoundError:
        raise ConfigError(f"model 'local/{path}': there is no folder {folder}") from None
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"model 'local/{path}': cannot be read: {error}") from None
    if "config.json" not in found:
        raise ConfigError(f"model 'local/{path}': no model folder, it holds no config.json")
    if not any(name.endswith(".safetensors") for name in found):
        raise ConfigError(f"model 'local/{path}': {_no_weights(folder)}")
    return folder


def _no_weights(folder: Path) -> str:
    pickled = sorted(file.name for pattern in _PICKLED for file in folder.glob(pattern))
    if pickled:
        return (
            f"{pickled[0]} is pickled and can run code when it is read; "
            "only *.safetensors are read: save the model again with save_pretrained"
        )
    if any(folder.glob("*.gguf")):
        return "GGUF files are not read here: serve them with llama.cpp and name its URL"
    return "it holds no weights (*.safetensors)"
