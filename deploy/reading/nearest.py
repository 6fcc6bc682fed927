"""The ids that a mistyped one may have meant."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import islice

_SHOWN = 3
_LOOKED_AT = 100_000
_COMPARED = 1_000
_LENGTH = 80
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names most like `name`, nearest first; equal numbers are alike however many zeros they begin with.

    >>> nearest("sample-7", [f"sample-{i:03}" for i in range(1, 73)])
    ['sample-007', 'sample-017', 'sample-027']

    Of very many names only the first are looked at, and of those only the likeliest compared in full.
    """
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(_plain(name))
    names = sorted(islice(known, _LOOKED_AT))

    def roughly(each: str) -> float:
        matcher.set_seq1(_plain(each))
        return matcher.quick_ratio()

    def exactly(each: str) -> float:
        matcher.set_seq1(_plain(each))
        return matcher.ratio()

    if len(names) > _COMPARED:
        names = heapq.nlargest(_COMPARED, names, key=roughly)
    return heapq.nlargest(_SHOWN, names, key=exactly)


def _plain(name: str) -> str:
    return _ZEROS.sub("", name[:_LENGTH].casefold())
