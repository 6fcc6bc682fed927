"""Texts cut into chunks for retrieval."""

from __future__ import annotations

from moot.protocols.selene.sentences import split_sentences


def chunks_of(text: str) -> list[str]:
    """The chunks of a text, in order; none of an empty one.

    >>> chunks_of("It rained. We went home.")
    ['It rained.', 'We went home.']
    """
    return split_sentences(text)
