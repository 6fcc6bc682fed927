"""The body of a classifier: a sentence encoder in its folder, loaded only if every file of it is data."""

from __future__ import annotations

from pathlib import Path

from moot.actors.encoders.batching import BatchedEncoder
from moot.actors.encoders.interface import Encoder
from moot.actors.encoders.sentence_model import SentenceModel, check_modules, folder_digest, is_hidden
from moot.actors.models.retry import RetryPolicy
from moot.protocols.errors import ConfigError

_DATA = frozenset({".json", ".safetensors", ".txt"})
_MOST_FILES, _MOST_BYTES = 64, 2**33


def check_body(folder: Path, digest: str) -> None:
    """Refuse a body that is not the one that was trained, or that holds anything but weights and settings.

    A sentence-transformers folder may name Python of its own, which is run when it is loaded, and weights may be a
    pickle, which can hold any code: neither is let through. Nor is a file that the digest does not cover, or a module
    that lies elsewhere.

    Raises:
        ConfigError: one line that names what is wrong.
    """
    try:
        files = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
        strange = sorted(path for path in files if path.is_symlink() or path.suffix not in _DATA)
        if strange:
            raise ConfigError(f"{strange[0]}: a classifier's body holds safetensors and JSON only; train it again")
        hidden = sorted(path for path in folder.rglob("*") if is_hidden(path.relative_to(folder)))
        if hidden:
            raise ConfigError(f"{hidden[0]}: a classifier's body has no hidden files or folders; train it again")
        if len(files) > _MOST_FILES or sum(path.stat().st_size for path in files) > _MOST_BYTES:
            raise ConfigError(f"{folder}: more or larger files than a classifier's body may have")
        check_modules(folder)
    except OSError as error:
        raise ConfigError(f"{folder}: {(error.strerror or 'cannot be read').lower()}") from None
    found = folder_digest(folder)
    if found != digest:
        raise ConfigError(f"{folder}: holds another model ({found}) than was trained ({digest}); train it again")


def body_name(digest: str) -> str:
    """What the vectors of a body are recorded under; it does not hang on where the folder lies.

    >>> body_name("0123456789ab")
    'setfit@0123456789ab'
    """
    return f"setfit@{digest}"


def body_encoder(folder: Path, digest: str, retry: RetryPolicy) -> Encoder:
    """The encoder, ready to be called; its weights are read when it first is.

    Args:
        folder: of the body.
        digest: of its files.
        retry: how failed batches are repeated.
    """
    return BatchedEncoder(SentenceModel(body_name(digest), str(folder.absolute()), digest), retry)
