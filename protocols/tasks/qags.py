"""QAGS as it is downloaded: sentences of summaries, and what three people said of each, as JSON Lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from moot.protocols.claims import HALLUCINATED, SUPPORTED
from moot.protocols.tasks.claim_rows import Claim, claims_task, source_name
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.row import Row, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

_SENTENCES = "summary_sentences"
_GOLD = {"yes": SUPPORTED, "no": HALLUCINATED}


def qags_task(source: Source, spec: str) -> Task:
    """A task over QAGS, a case per sentence; `open_task("qags:PATH")` is the usual way to it. Raises nothing."""
    return claims_task(
        partial(jsonl_rows, source),
        _claims,
        name="qags",
        spec=spec,
        path=source.file,
        replayable=source.replayable,
    )


def _claims(row: Row) -> Iterator[Claim]:
    row.require(("article", _SENTENCES))
    article = row.text("article")
    for item in _objects(row, row.values[_SENTENCES], "sentences"):
        text = row.checked(_SENTENCES, item.get("sentence"))
        yield Claim(text=text, gold=_majority(row, item), passage=article, group=source_name(article))


def _majority(row: Row, item: Mapping[str, object]) -> str | None:
    """What most of the people said; None where as many said yes as no."""
    votes = Counter[str]()
    for response in _objects(row, item.get("responses"), "responses"):
        vote = response.get("response")
        if vote not in ("yes", "no"):
            raise row.error(_SENTENCES, f"expected responses yes or no, found {shown(vote)}")
        votes[str(vote)] += 1
    if votes["yes"] == votes["no"]:
        return None
    return _GOLD[max(votes, key=lambda vote: votes[vote])]


def _objects(row: Row, value: object, name: str) -> list[Mapping[str, object]]:
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        found = "an empty list" if value == [] else shown(value)
        raise row.error(_SENTENCES, f"expected a list of {name}, each an object, found {found}")
    return value
