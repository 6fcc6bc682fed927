"""Local model (`local/PATH`): weights on disk, run inside this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from moot.actors.models.interface import Capabilities, ModelError, ModelReply, ReplySchema
from moot.actors.models.local.folder import model_folder, require_extra
from moot.actors.models.openai_errors import plain
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Decoding, Message
from moot.protocols.seeds import call_digest

if TYPE_CHECKING:
    from moot.actors.models.local.engine import GenerationEngine
    from moot.actors.models.local.token_mask import TokenMask

_log = structlog.get_logger(__name__)

MAX_ALTERNATIVES = 1000
"""Largest `top_logprobs`; the model knows its whole vocabulary, but a reply contains only what was requested."""


class LocalModel:
    """Model that transformers runs in this process, on a GPU when there is one.

    Models of the same folder share one copy of the weights, and concurrent calls are generated in one batch.
    Log-probabilities are the model's own, before temperature, `top_p` and the schema's mask.

    A reply is drawn from a hash of the seed, the messages, the step key and whether the temperature is 0. The rest of
    the batch changes its probabilities only by rounding, and so hardly ever its text.

    A temperature or `top_p` of None is 1: the model's own distribution. Usage counts the tokens of the reply, without
    the one that ends it.

    Args:
        path: the folder, as written by save_pretrained, with `*.safetensors`; `~` is the user's home.
        seed: the run's seed.

    Raises:
        ConfigError: the extra `local` is not installed, or the folder contains no model.
    """

    capabilities = Capabilities(
        max_alternatives=MAX_ALTERNATIVES,
        logprob_stage="before",
        structured_output="yes",
        dialect="llguidance",
        seeds=True,
        in_process=True,
    )

    def __init__(self, path: str, *, seed: int) -> None:
        require_extra()
        self.name = f"local/{path}"
        self._folder = model_folder(path)
        self._seed = seed
        self._engine: GenerationEngine | None = None
        self._borrowing = threading.Lock()

    def load(self) -> None:
        """Load the weights; blocks until they are in memory.

        Raises:
            ConfigError: they are not those of a supported language model.
        """
        self._borrow().loaded.result()

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        """Complete one conversation, batched with concurrent calls; the first call loads the weights.

        A reply constrained to a schema ends with the last bracket of its object. A reply that reaches its length limit
        or the model's context ends with `length`. Cancelling removes the call from its batch before the next token.

        Raises:
            ModelError: `request`, when the messages do not fit the chat template, too many alternatives are requested,
                the reply cannot be constrained to its schema, or the weights cannot be loaded; `context_length`;
                `server`, when computing failed.
        """
        asked = decoding.top_logprobs
        if asked is not None and not 0 <= asked <= MAX_ALTERNATIVES:
            raise ModelError("request", f"top_logprobs is {asked}, expected 0 to {MAX_ALTERNATIVES}")
        from moot.actors.models.local.sequence import GenerationRequest

        digest = call_digest(self._seed, messages, step_key, decoding.temperature == 0)
        reply: Future[ModelReply] = Future()
        engine = self._engine
        if engine is None:
            engine = await asyncio.to_thread(self._borrow)
        mask = None if schema is None else await _mask(engine, schema)
        engine.submit(GenerationRequest(messages, decoding, digest, reply, mask))
        return await asyncio.wrap_future(reply)

    async def check(self) -> None:
        """Read the folder's configuration and tokenizer, and the headers of its weights.

        Structured output is no longer declared if the tokenizer does not support constrained decoding.

        Raises:
            ConfigError: one line for the first fault.
        """
        from moot.actors.models.local.weights import check_folder

        why = await asyncio.to_thread(check_folder, self._folder)
        if why:
            self.capabilities = replace(self.capabilities, structured_output="no")
            _log.warning("replies are not constrained to a schema, and read as free JSON", model=self.name, why=why)

    async def close(self) -> None:
        """Free the weights, unless another model of this process uses them; a later call loads them again."""
        with self._borrowing:
            engine, self._engine = self._engine, None
        if engine is not None:
            from moot.actors.models.local.engine import release_engine

            await asyncio.to_thread(release_engine, engine)

    def _borrow(self) -> GenerationEngine:
        from moot.actors.models.local.engine import acquire_engine

        with self._borrowing:
            if self._engine is None:
                self._engine = acquire_engine(self._folder)
            return self._engine


async def _mask(engine: GenerationEngine, schema: ReplySchema) -> TokenMask:
    """Compile the mask outside of the engine's thread, which continues its batch."""
    try:
        # Shielded: a caller cancelled during loading must not cancel it for the others.
        masks = await asyncio.shield(asyncio.wrap_future(engine.loaded))
    except ConfigError as error:
        raise ModelError("request", plain(str(error))) from None
    return await asyncio.to_thread(masks.of_reply, schema)
