"""Start of a reply's content, after the section label or other fixed opening that its prompt asked for.

Such an opening is the same in most replies, and nearly certain there. A window from token 0 therefore measures the
choice of the opening as much as the confidence in the content.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

_NAMES: Final = r"""
    claim|evidence|reasoning|conclusion|challenge|counter[- ]?evidence|counter[- ]?argument
  | argument|thesis|position|rebuttal|critique|assessment|justification|explanation
  | analysis|summary|introduction|(?:(?:final|candidate)\ )?answer|response|solution|derivation
  | verification|step|strengths?|weakness(?:es)?
"""

_LABEL: Final = rf"""
    [\s\#>*_\[]*+                                    # markdown before the label
    (?:\(?(?:[0-9]{{1,2}}|[ivx]{{1,4}}|[a-d])[.)]\s*)?   # the section's number
    [*_\[]*+
    (?:{_NAMES})(?:\ [0-9]{{1,2}})?
    (?:
        [*_\]]*\ ?:[*_\]]*                           # a colon, inside or outside of the markdown
      | [*_]*\][*_]*                                 # a closing bracket
      | [*_]*[ \t]+[-\u2013\u2014](?=\s|$)           # a dash between spaces
      | [*_]*[ \t]*(?=\n|$)                          # the end of the line
    )
"""

_JSON: Final = r"""
    \s*(?:```[a-z]*\s*)?
    (?:\[\s*)?\{\s*
    (?:"[^"\\\n]{1,40}"\s*:\s*(?:[\[{]\s*)*)+        # the first key, or the first of each level down to a value
    "?
"""

_OPENING: Final = re.compile(rf"(?:{_JSON})?(?:{_LABEL})*\s*", re.IGNORECASE | re.VERBOSE)

_LONGEST_TOKENS: Final = 128
_LONGEST_CHARACTERS: Final = 1000
"""An opening is searched in the first tokens of a reply, and in their first characters, up to these numbers."""

SHARED_BY: Final = 0.9
"""Minimum proportion of replies that begin with the same tokens for these to be an opening."""


def content_start(tokens: Sequence[str]) -> int:
    """Index of the first token with content, from 0.

    Openings are English section labels (`Claim:`, `**Claim:**`, `### 1. Claim`, `Challenge -`, `[Evidence]`, several in
    sequence), the beginning of a JSON object up to its first value, or the second followed by the first; including the
    spaces after them. A label requires its colon, dash, bracket or end of line: "Claims like this" is content. Labels
    in other languages are content, too; see `shared_prefixes`.

    Args:
        tokens: tokens of a reply as text; their concatenation is the reply.

    Returns:
        In [0, T]: 0 without an opening, T if there is no content. A token that ends the opening and begins the content
        counts as content.

    >>> content_start(["**", "Claim", ":**", " The", " essay"])
    3
    >>> content_start(['{"', "claim", '":', ' "', "The", " essay"])
    4
    >>> content_start(["The", " claim", ":", " none"])
    0
    """
    end = len(_opening(tokens))
    ends = accumulate(len(token) for token in tokens)
    return next((number for number, stop in enumerate(ends) if stop > end), len(tokens)) if end else 0


def shared_prefixes(replies: Sequence[Sequence[str]]) -> list[int]:
    """Length in tokens of the prefix that each reply shares with nearly all others.

    It finds what `content_start` does not know: labels of custom prompts or in another language, "A:" after "Q:". The
    shared opening is the longest sequence of tokens with which at least `SHARED_BY` of the non-empty replies begin. The
    length for a reply that deviates from it is that of the tokens in common.

    Args:
        replies: tokens of each reply to the same kind of prompt; a single reply shares nothing.

    Returns:
        A length per reply, in [0, T].

    >>> shared_prefixes([["A", ":", " Paris"], ["A", ":", " Rome"], []])
    [2, 2, 0]
    """
    following = [tokens for tokens in replies if tokens]
    least = max(2.0, SHARED_BY * len(following))
    shared: list[str] = []
    while len(following) >= least:
        nexts = Counter(tokens[len(shared)] for tokens in following if len(tokens) > len(shared))
        token, count = nexts.most_common(1)[0] if nexts else ("", 0)
        if count < least:
            break
        following = [tokens for tokens in following if list(tokens[len(shared) : len(shared) + 1]) == [token]]
        shared.append(token)
    return [_common_prefix(tokens, shared) for tokens in replies]


def _common_prefix(tokens: Sequence[str], shared: Sequence[str]) -> int:
    """Number of leading tokens that a reply has in common with the shared opening."""
    pairs = zip(tokens, shared, strict=False)
    return next((number for number, (own, other) in enumerate(pairs) if own != other), min(len(tokens), len(shared)))


def _opening(tokens: Sequence[str]) -> str:
    """Opening with the spaces before and after it; "" if there is none."""
    result = _OPENING.match("".join(tokens[:_LONGEST_TOKENS])[:_LONGEST_CHARACTERS])
    return result.group() if result and result.group().strip() else ""
