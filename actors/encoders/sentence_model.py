"""Embeddings from a sentence-transformers model in this process."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from moot.actors.encoders.interface import Rows, unit_rows
from moot.actors.encoders.model_folder import check_modules, find_folder, folder_digest
from moot.actors.models.interface import ModelError
from moot.actors.models.openai_errors import plain
from moot.protocols.errors import CapabilityMissing, ConfigError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_FORWARD_TEXTS = 32


class SentenceModel:
    """A sentence-transformers model: on the GPU where this process sees one, else on the CPU; never downloaded.

    Loaded when it is first needed, in a thread of its own, where every batch is computed, one at a time. The same text
    gives the same vector up to about 1e-6: the rest hangs on the other texts of its batch.

    Args:
        name: what embeddings are stored under.
        model: a path, or the name of an installed package that carries a model.
        digest: of the folder, as `folder_digest` gives it; another one is refused.
    """

    most_under_way = 1
    deadline_s: float | None = None

    def __init__(self, name: str, model: str, digest: str) -> None:
        self.name = name
        self.dimension: int | None = None
        self._place, self._digest = model, digest
        self._model: SentenceTransformer | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sentence-transformers")

    async def encode_batch(self, texts: Sequence[str]) -> Rows:
        """See `Batched.encode_batch`.

        Raises:
            ModelError: `refused` when the model cannot be loaded, `request` when it cannot take these texts,
                `unparsable` when it gives what is no direction.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._forward, list(texts))

    async def check(self) -> None:
        """See `Batched.check`.

        Raises:
            CapabilityMissing: the package is not installed.
        """
        if importlib.util.find_spec("sentence_transformers") is None:
            raise CapabilityMissing(
                f"encoder {self.name!r} needs a package that is not installed: "
                "pip install 'moot[sentence-transformers]'"
            )

    async def close(self) -> None:
        """Let the model go, once the batch under way is done."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._model = None

    def _forward(self, texts: list[str]) -> Rows:
        model = self._loaded()
        try:
            rows = model.encode(texts, batch_size=_FORWARD_TEXTS, convert_to_numpy=True, show_progress_bar=False)
        except Exception as error:
            raise ModelError("request", plain(f"the forward pass failed: {type(error).__name__}: {error}")) from error
        try:
            found = unit_rows(np.asarray(rows))
        except ValueError as error:
            raise ModelError("unparsable", str(error)) from None
        self.dimension = found.shape[1]
        return found

    def _loaded(self) -> SentenceTransformer:
        if self._model is None:
            try:
                self._model = _load(self._place, self._digest)
            except ConfigError as error:
                raise ModelError("refused", str(error)) from None
            except Exception as error:
                said = f"the model in {self._place} cannot be loaded: {type(error).__name__}: {error}"
                raise ModelError("refused", plain(said)) from error
        return self._model


def _load(place: str, digest: str) -> SentenceTransformer:
    folder = find_folder(place)
    check_modules(folder)
    found = folder_digest(folder)
    if found != digest:
        raise ConfigError(f"{folder} holds another model ({found}) than the run began with ({digest})")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # it would write into the run's own progress
    try:
        return SentenceTransformer(str(folder), local_files_only=True, trust_remote_code=False)
    finally:
        if shown:
            logging.enable_progress_bar()
