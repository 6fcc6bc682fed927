"""Token masks for constrained decoding: the tokens that a JSON schema permits next, computed by llguidance."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from llguidance import LLMatcher, LLTokenizer
from llguidance.hf import from_tokenizer

from moot.actors.models.interface import ModelError, ReplySchema
from moot.actors.models.openai_errors import plain

MOST_SCHEMAS = 256
"""Size of the cache of compiled schemas; a case with labels of its own has one per reply type."""

_WRITTEN: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
"""A single layout of objects, without optional blanks, which a weak model would generate endlessly."""

_SILENT = 0

Tensor = Any
BoolTable = npt.NDArray[np.bool_]


class TokenMask:
    """Token mask of one reply: the tokens permitted next; used by one thread at a time.

    Args:
        matcher: at the start of the reply.
        ends: ids of the tokens that end an unconstrained reply. A constrained one ends with its last bracket, so they
            are never permitted.
    """

    def __init__(self, matcher: LLMatcher, ends: Sequence[int]) -> None:
        self._matcher, self._ends = matcher, list(ends)

    @property
    def complete(self) -> bool:
        """Whether the reply is complete, so that no token may follow."""
        stopped: bool = self._matcher.is_stopped()
        return stopped

    def permitted(self, vocabulary: int) -> BoolTable:
        """Boolean mask of the permitted tokens, shape (V,); all False after an error."""
        found = np.zeros(vocabulary, dtype=np.bool_)
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        found[: len(bits)] = bits[:vocabulary]
        found[[end for end in self._ends if end < vocabulary]] = False
        return found

    def advance(self, token: int) -> None:
        """Advance by the drawn token.

        Raises:
            ModelError: `server`, when the token is not permitted, or the grammar became too complex.
        """
        if not self._matcher.consume_token(token):
            raise ModelError("server", f"the schema cannot be enforced: {_first_line(self._matcher.get_error())}")


class TokenMasks:
    """Cache of one model's reply schemas, compiled for its vocabulary; least recently used are evicted. Thread-safe.

    Args:
        tokenizer: of transformers.
        vocabulary: number of tokens for which the model has probabilities.
        ends: ids of the tokens that end a reply.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, ends: Sequence[int]) -> None:
        self._tokenizer, self._vocabulary, self._ends = tokenizer, vocabulary, list(ends)
        self._known: LLTokenizer | None = None
        self._compiled: OrderedDict[bytes, LLMatcher] = OrderedDict()
        self._lock = threading.Lock()

    def of_reply(self, schema: ReplySchema) -> TokenMask:
        """Token mask for a new reply.

        A schema takes a millisecond to compile; the first one takes up to a few seconds for a large vocabulary.

        Raises:
            ModelError: `request`, when the tokenizer or the schema does not support constrained decoding.
        """
        with self._lock:
            matcher = self._compiled.pop(schema.body, None) or self._compile(schema)
            self._compiled[schema.body] = matcher
            if len(self._compiled) > MOST_SCHEMAS:
                self._compiled.popitem(last=False)
            return TokenMask(matcher.deep_copy(), self._ends)

    def _compile(self, schema: ReplySchema) -> LLMatcher:
        try:
            if self._known is None:
                self._known = readable_tokens(self._tokenizer, self._vocabulary, self._ends)
            grammar = LLMatcher.grammar_from_json_schema(schema.body.decode(), overrides=_WRITTEN)
            matcher = LLMatcher(self._known, grammar, log_level=_SILENT)
        except ValueError as error:
            raise _unsupported_schema(schema, str(error)) from None
        if matcher.is_error():
            raise _unsupported_schema(schema, matcher.get_error())
        return matcher


def readable_tokens(tokenizer: Any, vocabulary: int, ends: Sequence[int]) -> LLTokenizer:
    """Vocabulary as bytes, for `TokenMasks`.

    Args:
        tokenizer, vocabulary, ends: see `TokenMasks`.

    Raises:
        ValueError: the tokenizer is of a kind whose tokens have no byte form.
    """
    return from_tokenizer(tokenizer, n_vocab=max(vocabulary, len(tokenizer)), eos_token=list(ends) or None)


def permitted_only(logits: Tensor, masks: Sequence[TokenMask | None]) -> Tensor:
    """Masks logits: minus infinity for tokens that are not permitted; unchanged where no reply is constrained.

    Args:
        logits: shape (B, V), float32; not modified.
        masks: of each row; None for an unconstrained one.
    """
    masked = [(place, mask) for place, mask in enumerate(masks) if mask is not None]
    if not masked:
        return logits
    places = torch.tensor([place for place, _ in masked], device=logits.device)
    table = np.stack([mask.permitted(logits.shape[-1]) for _, mask in masked])
    permitted = torch.from_numpy(table).to(logits.device)
    return logits.index_copy(0, places, logits[places].masked_fill(~permitted, -torch.inf))


def _unsupported_schema(schema: ReplySchema, why: str) -> ModelError:
    message = f"no reply can be constrained to the schema of {schema.name}, set `structured: false`: {_first_line(why)}"
    return ModelError("request", message)


def _first_line(error: str) -> str:
    """First line only: the rest is the state of the parser, which includes the reply."""
    return plain(error.partition("\n")[0])
