"""Agent C as a model: what is taken of its reply, what is counted, and what it finds where conflicts are planted."""

from __future__ import annotations

from typing import Any

import pytest
from ceda_script import ODD, claim_case, run_check
from planted_conflicts import AGREEING, ATTRIBUTED, FREE, INFLECTED, PLAIN

from moot.protocols.ceda.conflicts import first_difference, sentences_of
from moot.protocols.ceda.context_reply import ContextReply
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.synthesis import grounded

BY_MODEL = {"context.by": "model"}
TEXTS = ("The bridge was  opened\nin \u2018May\u2019 1932.", "The register has it opened in 1934.", "It is long.")
ITEMS = [Item(id=f"E{n}", kind="document", document="d", chunk=n, text=text) for n, text in enumerate(TEXTS, 1)]


def conflict(one: str, quoted: str, other: str, quoted_2: str) -> dict[str, str]:
    return {"item_1": one, "quote_1": quoted, "item_2": other, "quote_2": quoted_2}


CONFLICT = conflict("E1", "opened in 1932", "E2", "snowed")


def made(*facts: tuple[str, str], conflicts: Any = ()) -> Any:
    told = [{"item": source, "quote": quote} for source, quote in facts]
    statements = [{"text": "It is so.", "facts": told}] if told else []
    return grounded(ContextReply.model_validate({"statements": statements, "conflicts": list(conflicts)}), ITEMS)


@pytest.mark.parametrize(
    ("source", "quote"),
    [
        ("E1", "opened in"),
        ("e1", "THE BRIDGE was opened in"),
        ("1", '"opened in ...'),
        ("[E1]", "\u201copened in 'May' 1932\u201d."),
    ],
)
def test_a_quote_counts_whatever_its_marks_and_white_space(source: str, quote: str) -> None:
    (found, _) = made((source, quote))
    assert (found.statements[0].sources, found.unfounded) == (("E1",), 0)


@pytest.mark.parametrize(
    ("source", "quote"),
    [
        ("E1", "opened in 1934"),
        ("E9", "opened in"),
        ("E1 and E2", "opened in"),
        ("the bridge", "opened in"),
        ("E1", " ..."),
    ],
)
def test_a_quote_that_is_not_in_the_named_item_is_counted_and_not_used(source: str, quote: str) -> None:
    (found, _) = made((source, quote))
    assert (found.statements, found.unfounded) == ((), 1)
    (found, _) = made((source, quote), ("E3", "long"))
    assert (found.statements[0].facts, found.unfounded) == ((("E3", "long"),), 1)


def test_a_conflict_names_two_items_in_their_order_with_words_of_each() -> None:
    found, conflicts = made(
        conflicts=[
            conflict("E2", "opened in 1934", "E1", "1932"),
            conflict("E1", "bridge", "E2", "register"),
            conflict("E1", "1932", "E3", "1933"),
            conflict("E3", "It", "E3", "long"),
        ]
    )
    assert [(each.between, each.why) for each in conflicts] == [(["E1", "E2"], "meaning")]
    assert conflicts[0].detail == '"1932" against "opened in 1934"'
    assert found.unfounded == 2


async def test_conflicts_that_a_model_finds_part_the_debaters() -> None:
    said = {
        "statements": [],
        "conflicts": [conflict("E1", "Nobody", "E2", "160 people"), conflict("E1", "?", "E2", "x")],
    }
    passage = "\n\n".join((*FREE[0], "It rained in the night before."))
    floor, verdict = await run_check(claim_case(FREE[0][0], passage=passage), {"context": said}, BY_MODEL)
    evidence = floor.event("evidence")
    assert [each["between"] for each in evidence["conflicts"]] == [["E1", "E2"]]
    assert evidence["synthesis"] == {"statements": [], "unfounded": 1, "missing": ""}
    assert evidence["shown_to"] == {"debater/0": ["E1", "E3"], "debater/1": ["E2", "E3"]}
    assert "context-unfounded" in verdict.flags


async def test_a_statement_is_shown_with_all_of_its_evidence() -> None:
    facts = [("It is of 1932.", "E1", "opened in 1932"), ("One says 1934.", "E2", "in 1934"), ("No.", "E2", "in 1932")]
    context = {
        "statements": [{"text": text, "facts": [{"item": item, "quote": quote}]} for text, item, quote in facts],
        "conflicts": [conflict("E2", "in 1934", "E1", "opened in 1932")],
    }
    floor, _ = await run_check(claim_case(passage=ODD), {"context": context}, BY_MODEL)
    seen = {path: floor.asks[path].slots["statements"] for path in ("turn/1", "turn/2", "judge/0")}
    first, second = 'It is of 1932.\nE1: "opened in 1932"', 'One says 1934.\nE2: "in 1934"'
    texts = {path: [each["text"] for each in statements] for path, statements in seen.items()}
    assert texts == {"turn/1": [first], "turn/2": [second], "judge/0": [first, second]}
    (found,) = floor.asks["judge/0"].slots["conflicts"]
    assert found["text"] == 'both cannot be true: "opened in 1932" against "in 1934"'


@pytest.mark.parametrize(
    ("quoted", "opposed", "shown", "told"),
    [
        ([("E1", "opened in 1932")], [], "split", [False, True]),
        ([("E1", "opened in 1932"), ("E2", "snowed")], [], "split", [False, False]),
        ([("E1", "opened in 1932")], [], "shared", [False, False]),
        ([], [], "shared", [True, True]),
        ([("E2", "words that are nowhere")], [], "split", [False, False]),  # what is made up tells nothing
        ([("E1", "opened in 1932")], [CONFLICT], "split", [False, False]),
        ([], [CONFLICT], "split", [False, False]),
    ],
)
async def test_a_debater_in_whose_items_nothing_on_the_claim_is_found_is_told_so(
    quoted: list[tuple[str, str]], opposed: list[dict[str, str]], shown: str, told: list[bool]
) -> None:
    """It is told what agent C found, not what its items say; an item at odds with another bears on the claim."""
    statements = [{"text": "So it is.", "facts": [{"item": item, "quote": quote}]} for item, quote in quoted]
    said: dict[str, Any] = {
        "context": {"statements": statements, "conflicts": opposed},
        "turn/*": {"says": "DENY", "text": "I cannot tell.", "stance": "unclear"},
    }
    floor, verdict = await run_check(
        claim_case(documents=("The old bridge opened in 1932.", "It snowed in the hills.")),
        said,
        {"context.by": "model", "evidence.shown": shown},
    )
    assert [floor.asks[f"turn/{turn}"].slots.get("nothing_on_claim", False) for turn in (1, 2)] == told
    instructions = [floor.instructions(f"turn/{turn}") for turn in (1, 2)]
    assert ["found nothing on the claim" in each for each in instructions] == told
    assert all("Rest on the evidence" in each for each in instructions)
    assert ("nothing-on-claim" in verdict.flags) == any(told)


async def test_a_model_that_fails_leaves_the_evidence_as_it_is() -> None:
    floor, verdict = await run_check(claim_case(passage="\n\n".join(PLAIN[0])), {"context": None}, BY_MODEL)
    evidence = floor.event("evidence")
    assert (evidence["conflicts"], evidence["synthesis"]) == (
        [],
        {"statements": [], "unfounded": 0, "missing": "refused: scripted"},
    )
    assert "context-missing" in verdict.flags
    assert len(floor.asks["turn/1"].slots["evidence"]) == 2


@pytest.mark.parametrize(("planted", "found"), [(PLAIN, 4), (ATTRIBUTED, 3), (INFLECTED, 4), (FREE, 0), (AGREEING, 0)])
def test_what_the_rules_find_of_planted_conflicts(planted: tuple[tuple[str, str], ...], found: int) -> None:
    """Attribution, irregular verbs and listed figures do not hide a conflict; other words do."""
    assert sum(first_difference(sentences_of(a), sentences_of(b)) is not None for a, b in planted) == found
