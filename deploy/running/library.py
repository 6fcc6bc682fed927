"""The library of a run: what `--docs` names, embedded before the engine starts."""

from __future__ import annotations

from collections.abc import Callable

from moot.actors.encoders.resolve import make_encoder
from moot.actors.models.retry import RetryPolicy
from moot.actors.retrieval.build import build_library
from moot.deploy.running.documents import is_finished
from moot.deploy.running.prepare import Prepared


async def build_run_library(prepared: Prepared, told: Callable[[int, int], None]) -> None:
    """Build the run's library, or go on with it; nothing without documents, or with a library that is finished.

    Args:
        told: is told how many chunks of how many are embedded, now and then.

    Raises:
        UserError: the encoder fails, or the folder holds a library of other documents.
        RecordError: the disk is full, or cannot be written.
    """
    config, docs = prepared.config, prepared.docs
    if docs is None or docs.library is not None or prepared.library is None:
        return
    if is_finished(prepared.library, docs.digest, config.encoder):
        return
    encoder = make_encoder(config.encoder, RetryPolicy(), api_key_env=config.encoder_key_env)
    try:
        await build_library(prepared.library, docs.chunks, encoder, told)
    finally:
        await encoder.close()
