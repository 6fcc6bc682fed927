"""Sentences, evidence and its perturbed variants."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_floor import ScriptedFloor, ScriptedPosition

from moot.protocols.case import Case
from moot.protocols.lookups import Passage
from moot.protocols.registry import make_protocol
from moot.protocols.selene.agent_state import AgentState
from moot.protocols.selene.evidence import Evidence, evidence_of, perturb, subset_variants, with_retrieved
from moot.protocols.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("  \n\n ", []),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Pi is 3.14 or so. Yes.", ["Pi is 3.14 or so.", "Yes."]),
        ("Mr. A. B. Smith met Dr. Jones. They spoke.", ["Mr. A. B. Smith met Dr. Jones.", "They spoke."]),
        ("Made in the U.S. The rest is not.", ["Made in the U.S.", "The rest is not."]),
        ("The U.S. Congress met.", ["The U.S. Congress met."]),
        ("See no. 5 of it. Is it so? No. It is not.", ["See no. 5 of it.", "Is it so?", "No.", "It is not."]),
        ('He said "No." Then he left.', ['He said "No."', "Then he left."]),
        ("wait... and see. Done", ["wait... and see.", "Done"]),
        ("Heading\n\nBody text", ["Heading", "Body text"]),
        ("是的。不是。", ["是的。", "不是。"]),
    ],
)
def test_sentences(text: str, pieces: list[str]) -> None:
    assert split_sentences(text) == pieces


@given(st.text())
def test_no_character_but_space_is_lost(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@given(st.integers(0, 40), st.integers(1, 6), st.integers(0, 2**64 - 1))
def test_subset_variants_keep_at_least_half_and_depend_on_the_seed_alone(n: int, k: int, seed: int) -> None:
    sentences = [f"s{i}" for i in range(n)]
    sets = subset_variants(sentences, k, seed)
    assert sets == subset_variants(sentences, k, seed)
    assert len(sets) == k
    for chosen in sets:
        assert len(set(chosen)) == len(chosen) >= math.ceil(n / 2)
        assert set(chosen) <= set(sentences)
        assert len(chosen) < n or n <= 1
    assert len(set(sets)) == k or n < 4, "few sentences have few samples"
    assert subset_variants(sentences, k + 1, seed)[:k] == sets


async def test_a_bare_question_pools_the_rationales_once() -> None:
    case = Case(id="c", question="Can penguins fly?", labels=("Yes", "No"))
    stands = [
        AgentState(0, "agent/0", "No", "Penguins swim. They are birds.", 0.9, None),
        AgentState(1, "agent/1", "No", "They are birds. Wings are short.", 0.9, None),
    ]
    evidence = await evidence_of(case, ScriptedFloor(case, {}), stands)
    assert evidence.source == "rationales"
    assert evidence.sentences == ("Penguins swim.", "They are birds.", "Wings are short.")


DOCUMENTS = ("Penguins swim @20.\n\nThey eat fish @95.", "Gulls fly @60.", "Bread costs two francs @180.")


@pytest.mark.parametrize(
    ("passage", "n", "source", "pieces"),
    [
        ("", 5, "documents", ("Penguins swim @20.", "A gull @40.", "Gulls fly @60.")),
        ("One. Two.", 2, "passage and documents", ("One.", "Two.", "Penguins swim @20.", "A gull @40.")),
        ("One. Two.", 0, "passage", ("One.", "Two.")),
    ],
)
async def test_the_nearest_chunks_of_documents_and_library_are_evidence(
    passage: str, n: int, source: str, pieces: tuple[str, ...]
) -> None:
    case = Case(id="c", question="Can penguins fly?", passage=passage, documents=DOCUMENTS)
    library = [Passage(document="birds.txt", chunk=7, page=2, text="A gull @40.", similarity=0.766)]
    floor = ScriptedFloor(case, {}, passages=library)
    debated = await with_retrieved(case, floor, n)
    evidence = await evidence_of(debated, floor, [])
    assert (evidence.source, evidence.sentences) == (source, pieces)
    if not n:
        assert (floor.embedded, floor.searched, floor.events) == ([], [], [])
        return
    found = floor.event("retrieved", "retrieval")["pieces"]
    assert [(each["document"], each["chunk"], each.get("page")) for each in found[:2]] == [
        ("document 1", 0, None),
        ("birds.txt", 7, 2),
    ]


async def test_agents_and_judges_read_the_retrieved_chunks() -> None:
    case = Case(id="c", question="Can penguins fly?", labels=("Yes", "No"), documents=DOCUMENTS)
    said = {"opening/agent/0": ScriptedPosition("Yes"), "opening/*": ScriptedPosition("No")}
    floor = ScriptedFloor(case, {**said, "round/*": ScriptedPosition("No"), "*": 0.8})
    await make_protocol("selene", {"debate.max_rounds": 1}).run(case, floor)
    for path in ("opening/agent/0", "round/1/agent/1", "judge/candidate/0/judge/0/variant/0/pass/0"):
        prompt = floor.prompt(path)
        assert "Gulls fly @60." in prompt, path
        assert "Bread" not in prompt, path


async def test_paraphrases_are_asked_and_failed_ones_left_out() -> None:
    case = Case(id="c", question="?", labels=("Yes", "No"), passage="One. Two.")
    floor = ScriptedFloor(case, {"*/0": ["1", "2"], "*/1": None, "*/2": ["1"], "*/3": ["  "]})
    evidence = await evidence_of(case, floor, [])
    made = await perturb(floor, evidence, 4, "paraphrase")
    assert (made.kind, made.sets, made.failed) == ("paraphrase", (("1", "2"), ("1",)), 2)
    asked = floor.asks["evidence/paraphrase/0"]
    assert (asked.role, asked.template) == ("judge/0", "selene/paraphrase")
    assert asked.slots == {"evidence": ["One.", "Two."], "version": 1, "versions": 4}
    broken = ScriptedFloor(case, {"*": None})
    unperturbed = await perturb(broken, evidence, 3, "paraphrase")
    assert (unperturbed.kind, unperturbed.sets, unperturbed.failed) == ("none", (("One.", "Two."),), 3)


SENTENCES = ("It swims.", "It is a bird.", "It eats fish.")
OTHER = ["A swimmer.", "A bird.", "A fisher."]
SAME = ["it swims", "It is a BIRD!", "It eats fish"]


@pytest.mark.parametrize(
    ("replies", "kind", "sets", "failed", "repeated"),
    [
        ([OTHER, OTHER, [*OTHER[:2], "It eats fish."]], "paraphrase", 2, 0, 1),
        ([OTHER, OTHER, OTHER], "paraphrase", 1, 0, 2),
        ([OTHER, SAME, None], "paraphrase", 1, 1, 1),
        ([SAME, SAME, None], "none", 1, 1, 2),
        ([None, None, None], "none", 1, 3, 0),
    ],
)
async def test_a_paraphrase_that_repeats_the_evidence_or_another_one_is_no_variant(
    replies: list[Any], kind: str, sets: int, failed: int, repeated: int
) -> None:
    case = Case(id="c", question="?", passage=" ".join(SENTENCES))
    floor = ScriptedFloor(case, {f"evidence/paraphrase/{n}": reply for n, reply in enumerate(replies)})
    made = await perturb(floor, Evidence(SENTENCES, "passage"), 3, "paraphrase")
    assert (made.kind, len(made.sets), made.failed, made.repeated) == (kind, sets, failed, repeated)
    assert made.unperturbed is (kind == "none")


async def test_each_paraphrase_is_asked_for_in_a_prompt_of_its_own() -> None:
    case = Case(id="c", question="?", passage=" ".join(SENTENCES))
    floor = ScriptedFloor(case, {"*": None})
    await perturb(floor, Evidence(SENTENCES, "passage"), 20, "paraphrase")
    assert len({floor.prompt(path) for path in floor.paths()}) == 20


@pytest.mark.parametrize(("sentences", "distinct"), [(1, 1), (2, 2), (3, 6), (4, 6)])
async def test_few_sentences_have_few_samples_and_each_is_judged_once(sentences: int, distinct: int) -> None:
    evidence = Evidence(tuple(f"s{n}" for n in range(sentences)), "passage")
    made = await perturb(ScriptedFloor(Case(id="c", question="?"), {}), evidence, 6, "subset")
    assert len(set(made.sets)) == len(made.sets) == distinct
    assert (made.repeated, made.unperturbed) == ((6, True) if sentences == 1 else (6 - distinct, False))
