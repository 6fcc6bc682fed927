"""Agent A: which chunks become evidence, in which order, and from where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ceda_script import claim_case, run_check
from scripted_floor import ScriptedFloor

from moot.protocols.ceda.retrieval import retrieve
from moot.protocols.ceda.settings import EvidenceSettings
from moot.protocols.chunk_retrieval import MOST_SEARCHED
from moot.protocols.lookups import Passage

PASSAGE = "Apples are red @60.\n\nPears are green @10.\n\nPlums are blue @80."


def library(*similarities: float) -> list[Passage]:
    return [
        Passage(document="notes.pdf", chunk=i, page=i + 1, text=f"Note number {i}.", similarity=similarity)
        for i, similarity in enumerate(similarities)
    ]


async def found(passages: Any = (), settings: Any = None, **case: Any) -> tuple[ScriptedFloor, list[Any]]:
    one = claim_case(**case)
    floor = ScriptedFloor(one, {}, passages=passages)
    return floor, await retrieve(one, floor, EvidenceSettings(**(settings or {})))


async def test_the_nearest_come_first_over_all_sources() -> None:
    floor, items = await found(library(0.9, 0.3), passage=PASSAGE, documents=("Quinces are yellow @30.",))
    assert [(item.id, item.kind, item.document, item.chunk) for item in items] == [
        ("E1", "passage", "passage", 1),
        ("E2", "document", "notes.pdf", 0),
        ("E3", "document", "document 1", 0),
        ("E4", "passage", "passage", 0),
        ("E5", "document", "notes.pdf", 1),
    ]
    assert [item.similarity for item in items] == pytest.approx([0.9848, 0.9, 0.866, 0.5, 0.3], abs=1e-3)
    assert items[1].page == 1
    assert floor.searched == [claim_case().question]
    assert floor.embedded[0] == claim_case().question


async def test_ties_go_by_place() -> None:
    _, items = await found(
        [Passage(document="library", chunk=0, text="In the library.", similarity=1.0)],
        passage="In the passage.",
        documents=("In one document.", "In another document."),
    )
    assert [item.document for item in items] == ["passage", "document 1", "document 2", "library"]


async def test_what_is_not_above_the_least_similarity_is_no_evidence() -> None:
    _, items = await found(library(0.5, 0.49999), {"least_similarity": 0.5}, passage="Beside it @90.")
    assert items == []
    _, items = await found(library(0.5, 0.0, -0.2))
    assert [item.similarity for item in items] == [0.5]


async def test_what_says_the_same_is_evidence_once() -> None:
    again = [
        Passage(document="copy.txt", chunk=0, text="Pears are  green @10.", similarity=0.99),
        Passage(document="other.txt", chunk=0, text="Figs are brown.", similarity=0.2),
    ]
    _, items = await found(again, {"passages": 4}, passage=PASSAGE)
    assert [item.text.split()[0] for item in items] == ["Pears", "Apples", "Figs", "Plums"]
    assert items[0].document == "copy.txt", "the nearest one stays"


def repeated(count: int, *others: float) -> list[Passage]:
    """A library in which so many files say the same, and others something else of these similarities."""
    same = [Passage(document=f"{i}.txt", chunk=0, text="All rights reserved.", similarity=0.9) for i in range(count)]
    return same + library(*others)


async def test_repeated_texts_take_the_place_of_nothing_else() -> None:
    floor, items = await found(repeated(15, 0.8, 0.7, 0.6), {"passages": 3})
    assert [(item.document, item.similarity) for item in items] == [
        ("0.txt", 0.9),
        ("notes.pdf", 0.8),
        ("notes.pdf", 0.7),
    ]
    assert floor.searched == [claim_case().question] * 2
    floor, items = await found(repeated(15), {"passages": 3})
    assert len(items) == 1
    assert len(floor.searched) == 2, "then the library has nothing more"


async def test_the_library_is_searched_once_where_texts_differ() -> None:
    floor, _ = await found(library(*(1 - i / 100 for i in range(40))))
    assert len(floor.searched) == 1
    floor, _ = await found(repeated(40, -0.1), {"passages": 2, "least_similarity": 0.9})
    assert len(floor.searched) == 1, "nothing behind is near enough"


async def test_there_is_an_end_to_searching_on() -> None:
    floor, items = await found(repeated(MOST_SEARCHED, 0.5), {"passages": 2})
    assert len(items) == 1
    assert len(floor.searched) < 10


async def test_long_texts_give_the_same_as_short_ones() -> None:
    text = " ".join(f"Sentence {i} tells of apples." for i in range(2000))
    _, items = await found(passage=text, settings={"passages": 3})
    assert [item.chunk for item in items] == [0, 1, 2]


async def test_numbers_of_the_encoder_do_not_reach_the_record() -> None:
    floor, _ = await run_check(claim_case(passage=PASSAGE))
    assert not any(isinstance(item["similarity"], np.generic) for item in floor.event("evidence")["items"])
