"""Token arrays of many replies, from Arrow columns: log-probabilities, alternatives, and starts of the content."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.sampling import Sampling, mask_forced_tokens
from moot.metrics.content_start import content_start, shared_prefixes
from moot.metrics.ragged import RaggedArray
from moot.metrics.token_entropy import entropy_lower, entropy_renormalised, entropy_upper
from moot.protocols.errors import ConfigError

HEAD_TOKENS = 24
"""Tokens at the start of a reply that are searched for its opening."""


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Tokens of R replies.

    Attributes:
        logprobs: log-probabilities in nats; an empty row for a reply without any.
        alternatives: log-probabilities of the alternatives, K for each token of a row; empty rows without any.
        known: whether each reply has log-probabilities.
        heads: the first `HEAD_TOKENS` tokens of each reply; empty where unknown.
    """

    logprobs: RaggedArray
    alternatives: RaggedArray
    known: npt.NDArray[np.bool_]
    heads: Sequence[Sequence[str]]

    @staticmethod
    def from_arrow(table: pa.Table, known: npt.NDArray[np.bool_]) -> Tokens:
        """Tokens of R replies from a table of those that have any.

        Args:
            table: a row for each known reply, in order, with the column `logprob` (list of floats) and optionally
                `token` (list of texts), `alternatives` (number of alternatives of each token) and `alt_logprob`
                (flattened T x K).
            known: whether each reply has a row in the table, shape `(R,)`.
        """
        logprobs = ragged_of(table["logprob"])
        heads = _heads(table)
        valid = np.asarray(pc.is_valid(table["logprob"]).to_numpy(zero_copy_only=False), np.bool_)
        has_logprobs = np.zeros(len(known), np.bool_)
        has_logprobs[np.flatnonzero(known)[valid]] = True
        remaining = iter(heads)
        listed = "alt_logprob" if "alt_logprob" in table.column_names else None
        none = RaggedArray(np.empty(0, np.float32), np.zeros(len(known) + 1, np.int64))
        return Tokens(
            logprobs=_spread(logprobs, known),
            alternatives=_spread(ragged_of(table[listed]), known) if listed else none,
            known=has_logprobs,
            heads=[next(remaining) if has_row else [] for has_row in known.tolist()],
        )

    def own(self, sampling: Sequence[Sampling]) -> Tokens:
        """Tokens with NaN where a schema's mask may have forced the token: it has no information on the model.

        Args:
            sampling: the sampling parameters of each reply.
        """
        masked = np.array([each.may_be_masked for each in sampling], np.bool_)
        if not masked.any():
            return self
        return replace(
            self, logprobs=_unforced(self.logprobs, masked), alternatives=_unforced(self.alternatives, masked)
        )

    def entropies(self, vocabulary: int | None) -> dict[str, RaggedArray]:
        """Token entropies in nats, by name; empty without alternatives, and without `upper` for an unknown vocabulary.

        Raises:
            ConfigError: a token has more alternatives than the vocabulary has tokens.
        """
        if not len(self.alternatives.values):
            return {}
        found = {
            "lower": entropy_lower(self.logprobs, self.alternatives),
            "renormalised": entropy_renormalised(self.logprobs, self.alternatives),
        }
        if vocabulary is not None:
            try:
                found["upper"] = entropy_upper(self.logprobs, self.alternatives, vocabulary)
            except ValueError as error:
                raise ConfigError(f"--vocabulary {vocabulary} is too small: {error}") from None
        return found


def join_tokens(parts: Sequence[Tokens]) -> Tokens:
    """Tokens of several runs, concatenated."""
    if len(parts) == 1:
        return parts[0]
    return Tokens(
        logprobs=RaggedArray.concatenate([part.logprobs for part in parts]),
        alternatives=RaggedArray.concatenate([part.alternatives for part in parts]),
        known=np.concatenate([part.known for part in parts]),
        heads=[head for part in parts for head in part.heads],
    )


def content_starts(
    heads: Sequence[Sequence[str]], alike: Sequence[Hashable]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """Start of each reply's content as a token index, and the opening before it, each of shape `(R,)`.

    An opening is a section label, or the common start of nearly all replies to the same kind of ask.

    Args:
        heads: the first tokens of each reply.
        alike: a key of each reply, equal for replies to the same kind of ask.
    """
    starts = np.array([content_start(head) for head in heads], np.int64)
    groups: dict[Hashable, list[int]] = {}
    for number, key in enumerate(alike):
        groups.setdefault(key, []).append(number)
    for numbers in groups.values():
        starts[numbers] = np.maximum(starts[numbers], shared_prefixes([heads[number] for number in numbers]))
    openings = ["".join(head[:start]).strip() for head, start in zip(heads, starts.tolist(), strict=True)]
    return starts, np.array(openings, dtype=object)


def ragged_of(column: pa.ChunkedArray) -> RaggedArray:
    """Ragged array of a list column; a null list is an empty row, a null number is NaN."""
    kind = pa.large_list(pa.float32())
    lists = pa.chunked_array(column.chunks, column.type).cast(kind).combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.chunk(0) if lists.num_chunks else pa.array([], kind)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False), np.int64)
    values = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    return RaggedArray(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))


def _heads(table: pa.Table) -> list[list[str]]:
    """First tokens of each reply; empty lists where their texts are unknown."""
    if "token" not in table.column_names:
        return [[] for _ in range(table.num_rows)]
    heads = pc.list_slice(table["token"], 0, HEAD_TOKENS).to_pylist()
    return [[token or "" for token in head or ()] for head in heads]


def _spread(rows: RaggedArray, known: npt.NDArray[np.bool_]) -> RaggedArray:
    """Rows at the known positions, with empty rows elsewhere."""
    lengths = np.zeros(len(known), np.int64)
    lengths[known] = rows.lengths
    return RaggedArray(rows.values, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))


def _unforced(rows: RaggedArray, masked: npt.NDArray[np.bool_]) -> RaggedArray:
    return RaggedArray(
        np.where(np.repeat(masked, rows.lengths), mask_forced_tokens(rows.values), rows.values), rows.offsets
    )
