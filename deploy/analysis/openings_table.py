"""How the replies begin, and how far their entropies are known: both say how much an early window can mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from moot.deploy.analysis.replies import Replies, Stratum
from moot.deploy.analysis.table import Column, Table, Value

OPENINGS = (
    Column("stratum", "stratum"),
    Column("replies", "replies with tokens", digits=None, short="replies"),
    Column("openings", "distinct openings", digits=None, short="openings"),
    Column("most_frequent", "most frequent"),
    Column("share", "its share", short="commonest"),
    Column("tokens", "tokens before content, mean", digits=1),
)

ENTROPIES = (
    Column("stratum", "stratum"),
    Column("n", "replies with alternatives", digits=None, short="replies"),
    Column("lower", "at least", short="at least"),
    Column("renormalised", "over the listed", short="over listed"),
    Column("upper", "at most", short="at most"),
)


def openings_table(replies: Replies, strata: Sequence[Stratum]) -> Table:
    """The distinct openings of each stratum's replies: where all begin alike, the first tokens say little."""
    rows: list[dict[str, Value]] = []
    for stratum in strata:
        there = stratum.rows[replies.has_logprobs[stratum.rows]]
        if not len(there):
            continue
        counts = Counter(str(opening) for opening in replies.opening[there])
        first, most = counts.most_common(1)[0]
        rows.append(
            {
                "stratum": stratum.words,
                **stratum.keys,
                "replies": len(there),
                "openings": len(counts),
                "most_frequent": repr(first) if first else "(none)",
                "share": most / len(there),
                "tokens": float(replies.content_start[there].mean()),
            }
        )
    note = (
        "An opening is the section label or other fixed text that a reply begins with; `from content` features begin "
        "after it, and the column within_openings of the file `associations` compares replies of one opening only."
    )
    return Table("openings", "How the replies begin", rows, OPENINGS, notes=(note,))


def entropies_table(replies: Replies, strata: Sequence[Stratum]) -> Table:
    """Mean token entropy in each stratum, in nats, with the bounds that the listed alternatives leave."""
    rows: list[dict[str, Value]] = []
    for stratum in strata if replies.entropies else ():
        parts = {name: values.take(stratum.rows).values for name, values in replies.entropies.items()}
        known = int((replies.entropies["lower"].take(stratum.rows).lengths > 0).sum())
        row: dict[str, Value] = {"stratum": stratum.words, **stratum.keys, "n": known}
        for name in ("lower", "renormalised", "upper"):
            values = parts.get(name, np.empty(0))
            values = values[np.isfinite(values)]
            row[name] = float(values.mean()) if len(values) else None
        rows.append(row)
    note = (
        "Nats. Servers list a few alternatives for each token; what they do not list leaves the entropy between two "
        "bounds. The upper one needs the size of the vocabulary (--vocabulary). Features take the middle column."
    )
    return Table("entropies", "Token entropy and its bounds", rows, ENTROPIES, notes=(note,))
