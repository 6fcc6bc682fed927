"""Which encoder a classifier reads or begins with, and the vectors of the summaries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from moot.actors.encoders.interface import Rows
from moot.actors.encoders.resolve import EncoderSpec, identity, make_encoder
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.training.examples import Examples
from moot.protocols.errors import ConfigError


class NamedEncoder(NamedTuple):
    """An encoder's identity, and the environment variable with its key; None for the default of its form."""

    name: str
    key_env: str | None = None


def chosen_encoder(examples: Examples, given: str | None) -> NamedEncoder:
    """The encoder whose vectors are read: the given one, else that of the runs.

    Raises:
        ConfigError: the name is malformed, no such model is there, or the runs have several encoders or none.
    """
    of_runs = sorted({run.encoder for run in examples.runs if run.encoder})
    if given is None and len(of_runs) != 1:
        had = f"have several encoders ({', '.join(of_runs)})" if of_runs else "do not say which encoder they had"
        raise ConfigError(f"the runs {had}: name one with --encoder")
    name = identity(given or of_runs[0])
    keys = {str(key) for run in examples.runs if run.encoder == name and (key := _key_env(run.path))}
    return NamedEncoder(name, min(keys, default=None))


def _key_env(folder: object) -> str | None:
    found = read_run_yaml(RunFolder(str(folder))).get("encoder_key_env")
    return found if isinstance(found, str) else None


def base_of(name: str) -> NamedEncoder:
    """The sentence encoder that is to be fine-tuned.

    Raises:
        ConfigError: it is none on this machine.
    """
    if EncoderSpec.parse(name).kind != "sentence-transformers":
        raise ConfigError(f"--setfit {name}: expected sentence-transformers/NAME, a model whose weights can be trained")
    return NamedEncoder(identity(name))


def embedded(encoder: NamedEncoder, texts: Sequence[str]) -> Rows:
    """One unit vector per text, `(n, d)`; also from a thread whose event loop is running.

    Raises:
        UserError: the encoder cannot be used.
        EncoderFailed: no vector for one of the texts.
    """
    found: Future[Rows] = Future()
    thread = threading.Thread(target=_fetch, args=(encoder, texts, found), name="embeddings", daemon=True)
    thread.start()
    return found.result()


def _fetch(encoder: NamedEncoder, texts: Sequence[str], found: Future[Rows]) -> None:
    try:
        found.set_result(asyncio.run(_encoded(encoder, texts)))
    except BaseException as error:
        found.set_exception(error)


async def _encoded(named: NamedEncoder, texts: Sequence[str]) -> Rows:
    encoder = make_encoder(named.name, RetryPolicy(), api_key_env=named.key_env)
    try:
        await encoder.check()
        return await encoder.encode(texts)
    finally:
        await encoder.close()
