"""Hashed n-gram encoder (feature hashing), the default: hashed counts of words and word pieces."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from moot.actors.encoders.interface import Rows
from moot.protocols.text.unicode_form import nfkc

HASHED_NGRAMS = "hashed-ngrams-512-v1"
"""Name of the default encoder, as a run records it."""

_LONG_TEXTS = 3_000
"""Length in characters from which encoding takes some milliseconds."""

_WORD = re.compile(r"\w+")
_MARK = re.compile(r"\S")
_EMPTY = ("<empty>",)

_UNIGRAM, _BIGRAM, _TRIGRAM = np.uint64(0), np.uint64(1), np.uint64(2)
_FAMILY_WEIGHT = np.array([1.0, 0.6, 0.35, 0.0])
_FAMILY_MASK = np.uint64(3)
_LEFT, _RIGHT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class HashedNgramEncoder:
    """Feature hashing of words, word pairs and letter trigrams; deterministic, no download, no training.

    It measures which words and word pieces two texts share, and a little of their order, not their meaning: "penguins
    can fly" and "penguins cannot fly" are close, "is" and "is not" nearly equal, and paraphrases far apart. Use it to
    distinguish repetition from change, not agreement from disagreement.

    Words are compared after NFKC and case folding. Each feature adds family weight * (1 + ln count), with a hashed
    sign, at a hashed index; the row is then scaled to length 1. A text without any word or mark counts as one fixed
    token. Equal texts give equal rows in every process; across machines, up to the last bits of float arithmetic.

    Args:
        dimension: length of the vectors; below some hundred, unrelated texts collide.
    """

    def __init__(self, dimension: int = 512) -> None:
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1, not {dimension}")
        self.dimension = dimension
        self.name = f"hashed-ngrams-{dimension}-v1"

    async def encode(self, texts: Sequence[str]) -> Rows:
        """See `Encoder.encode`; never fails. Long texts leave the event loop."""
        if sum(map(len, texts)) > _LONG_TEXTS:
            return await asyncio.to_thread(self.rows, texts)
        return self.rows(texts)

    async def check(self) -> None:
        """See `Encoder.check`; never fails."""

    async def close(self) -> None:
        """See `Encoder.close`; there is nothing to release."""

    def rows(self, texts: Sequence[str]) -> Rows:
        """Unit vectors of texts, shape (n, dimension), float32."""
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        for index, text in enumerate(texts):
            rows[index] = self._row(text)
        return rows

    def _row(self, text: str) -> npt.NDArray[np.float64]:
        folded = nfkc(text).casefold()
        row = self._sum(tuple(_WORD.findall(folded) or _MARK.findall(folded)) or _EMPTY)
        length = float(np.sqrt(row @ row))
        if length < 1e-9:  # all features cancel out: possible in tiny dimensions
            row = self._sum(_EMPTY)
            row[0] += 1.0 - float(np.any(row))
            length = float(np.sqrt(row @ row))
        return row / length

    def _sum(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        features, counts = np.unique(_features(words), return_counts=True)
        weights = _FAMILY_WEIGHT[features & _FAMILY_MASK] * (1.0 + np.log(counts))
        weights[features >> np.uint64(63) == 1] *= -1.0
        places = (features >> np.uint64(2)) % np.uint64(self.dimension)
        return np.bincount(places.astype(np.intp), weights, minlength=self.dimension).astype(np.float64)


def _features(words: Sequence[str]) -> npt.NDArray[np.uint64]:
    """64-bit hashes of all features, repeats included; the two low bits encode the family."""
    per_word = [_word_features(word) for word in words]
    single = np.concatenate(per_word)
    starts = np.array([hashes[0] for hashes in per_word], dtype=np.uint64)
    pairs = _mixed(starts[:-1] * _LEFT + starts[1:] * _RIGHT)
    return np.concatenate((single, (pairs & ~_FAMILY_MASK) | _BIGRAM))


def _mixed(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Bit mixing: the finaliser of splitmix64."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


@lru_cache(maxsize=65536)
def _word_features(word: str) -> npt.NDArray[np.uint64]:
    """Hash of the word, then those of its letter trigrams with marked edges."""
    edged = f"<{word}>"
    triples = [edged[start : start + 3] for start in range(len(edged) - 2)]
    hashes = np.array([_stable_hash(piece) for piece in (word, *triples)], dtype=np.uint64) & ~_FAMILY_MASK
    hashes[1:] |= _TRIGRAM
    hashes[0] |= _UNIGRAM
    return hashes


def _stable_hash(piece: str) -> int:
    return int.from_bytes(blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
