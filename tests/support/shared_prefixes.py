"""Share of prompt tokens that a server may have computed before: those of the beginning of an earlier request.

Tokens are words and marks: a run of letters and digits, or any other character that is not blank. That is coarser than
a model's vocabulary, and the same for every model. A request's pictures are left out.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

Sent = Sequence[tuple[str, str]]
"""Messages of a request, each as role and text."""

_Tree = dict[str, "_Tree"]
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class PromptTokens:
    """Prompt tokens of some requests.

    Attributes:
        count: of all requests.
        repeated: those that equal the beginning of an earlier request.
    """

    count: int
    repeated: int

    @property
    def share(self) -> float:
        """Share of the repeated ones.

        Raises:
            ZeroDivisionError: no request has any token.
        """
        return self.repeated / self.count


def tokens(sent: Sent) -> list[str]:
    """Tokens of a request; each message begins with its role.

    >>> tokens([("system", "Be brief."), ("user", "2+2?")])
    ['\\x00system', 'Be', 'brief', '.', '\\x00user', '2', '+', '2', '?']
    """
    return [token for role, text in sent for token in (f"\0{role}", *_TOKEN.findall(text))]


def repeated_tokens(requests: Iterable[tuple[Hashable, Sent]]) -> PromptTokens:
    """Prompt tokens that equal the beginning of an earlier request with the same key, such as its case.

    The order of the requests has no effect: the tokens that are not repeated are the nodes of the tree of beginnings.
    """
    count, nodes = 0, 0
    trees: dict[Hashable, _Tree] = {}
    for key, sent in requests:
        at = trees.setdefault(key, {})
        for token in tokens(sent):
            count += 1
            if token not in at:
                nodes += 1
                at[token] = {}
            at = at[token]
    return PromptTokens(count, count - nodes)
