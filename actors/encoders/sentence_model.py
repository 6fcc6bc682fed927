"""Sentence-transformers encoder, run in this process."""

from __future__ import annotations

import importlib.util
import re
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from moot.actors.encoders.batching import Forward, ThreadedBackend
from moot.protocols.errors import CapabilityMissing, ConfigError
from moot.protocols.regular_files import cause, open_regular, read_regular

if TYPE_CHECKING:
    pass


_FORWARD_TEXTS = 32


class SentenceModel(ThreadedBackend):
    """Sentence-transformers encoder, on the GPU where this process has one, else on the CPU; never downloaded.

    Equal texts give equal vectors up to about 1e-6, depending on the other texts of the batch.

    Args:
        name: under which embeddings are stored.
        model: a path, or the name of an installed package with a model.
        digest: expected digest of the folder; another one is refused.
    """

    def __init__(self, name: str, model: str, digest: str) -> None:
        super().__init__(name, "sentence-transformers")
        self._place, self._digest = model, digest

    async def check(self) -> None:
        """See `BatchBackend.check`.

        Raises:
            CapabilityMissing: the package is not installed.
        """
        if importlib.util.find_spec("sentence_transformers") is None:
            raise CapabilityMissing(
                f"encoder {self.name!r} needs a package that is not installed: "
                "pip install 'moot[sentence-transformers]'"
            )

    def load(self) -> Forward:
        """See `ThreadedBackend.load`."""
        folder = find_folder(self._place)
        check_modules(folder)
        found = folder_digest(folder)
        if found != self._digest:
            raise ConfigError(f"{folder} holds another model ({found}) than the run began with ({self._digest})")
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()  # it would interfere with the run's own progress
        try:
            model = SentenceTransformer(str(folder), local_files_only=True, trust_remote_code=False)
        finally:
            if shown:
                logging.enable_progress_bar()
        return lambda texts: np.asarray(
            model.encode(texts, batch_size=_FORWARD_TEXTS, convert_to_numpy=True, show_progress_bar=False)
        )


_MARK = "modules.json"
"""File that marks a sentence-transformers folder."""

_OURS = "sentence_transformers."
_OF_WEIGHTS = frozenset(
    {"Transformer", "Pooling", "Normalize", "Dense", "LayerNorm", "Dropout", "WeightedLayerPooling", "StaticEmbedding"}
)
"""Modules that load only weights and numbers; others, such as `Router` and `WordEmbeddings`, import what files name."""

_MOST_MODULES_BYTES = 2**16
_CHUNK = 2**20
_NOT_WEIGHTS = frozenset({".md", ".png", ".py", ".pyc"})
"""Files that do not affect the vectors."""


def find_folder(name: str) -> Path:
    """Absolute folder of the model `name`: a path, or an installed package that includes one.

    The package is located, not imported.

    Raises:
        ConfigError: neither contains a sentence-transformers model.
    """
    folder = Path(name).expanduser()
    if (folder / _MARK).is_file():
        return folder.absolute()
    package = re.sub(r"[-.]+", "_", name)
    found = importlib.util.find_spec(package) if package.isidentifier() else None
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        for mark in (Path(place) / _MARK, *sorted(Path(place).glob(f"*/{_MARK}"))):
            if mark.is_file():
                return mark.parent
    raise ConfigError(
        f"encoder 'sentence-transformers/{name}': no folder with a {_MARK} is at that path or in an installed package "
        "of that name; models are not downloaded"
    )


def check_modules(folder: Path) -> None:
    """Refuses a sentence-transformers folder with custom Python code, which loading would run, or with a module outside
    of the folder.

    Raises:
        ConfigError: one line that names what is wrong.
    """
    file = folder / _MARK
    try:
        modules = msgspec.json.decode(read_regular(file, _MOST_MODULES_BYTES), type=list[dict[str, object]])
    except OSError as error:
        raise ConfigError(f"{file}: no sentence encoder is there ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"{file}: expected a JSON list of modules") from None
    for module in modules:
        kind = str(module.get("type", ""))
        if not (kind.startswith(_OURS) and kind.rpartition(".")[2] in _OF_WEIGHTS):
            raise ConfigError(f"{file}: `type`: expected a module of sentence-transformers that loads weights only")
        place = module.get("path", "")
        if not isinstance(place, str) or "\\" in place or not _is_inside(PurePosixPath(place)):
            raise ConfigError(f"{file}: `path`: expected a folder in the model's own")


def _is_inside(place: PurePosixPath) -> bool:
    return not place.is_absolute() and ".." not in place.parts


def folder_digest(folder: Path) -> str:
    """Digest of a model's folder: 12 hexadecimal digits over names and content of all files that affect vectors.

    Raises:
        ConfigError: a file cannot be read.
    """
    whole = blake2b(digest_size=6)
    try:
        for file in sorted(path for path in folder.rglob("*") if _counts(path, folder)):
            whole.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
            with open_regular(file) as content:
                while chunk := content.read(_CHUNK):
                    whole.update(chunk)
    except OSError as error:
        raise ConfigError(f"{folder}: {cause(error)}") from None
    return whole.hexdigest()


def _counts(path: Path, folder: Path) -> bool:
    return path.is_file() and not is_hidden(path.relative_to(folder)) and path.suffix not in _NOT_WEIGHTS


def is_hidden(name: Path) -> bool:
    """Whether a file, by its path in a model's folder, is excluded from the model's digest.

    >>> is_hidden(Path("1_Pooling/config.json")), is_hidden(Path(".cache/config.json")), is_hidden(Path("__x/y.json"))
    (False, True, True)
    """
    return any(part.startswith((".", "__")) for part in name.parts)
