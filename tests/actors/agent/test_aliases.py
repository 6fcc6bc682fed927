"""Aliases of labels and a case's documents: through the floor, into the record, and into no prompt."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from openai_server import ScriptedServer
from small_runs import run_debates, same_model_roles

from moot.actors.agent.intrinsic import intrinsic_of
from moot.actors.models.interface import ModelReply, TokenLogprobs
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case, LabelledCase
from moot.protocols.constructor_auditor.replies import Synthesis
from moot.protocols.floor import Floor
from moot.protocols.messages import Ask, Usage, Verdict
from moot.protocols.replies import Position
from moot.protocols.reply_ids import reply_id

CASE = Case(
    id="c",
    question="What is it?",
    labels=("Influenza", "Cold"),
    aliases=(("the flu",), ()),
    documents=("A page that nobody retrieved.",),
)


class AskTwice(DebateProtocol):
    """Asks for two positions with the package's opening prompt; the first reply to the second cannot be read."""

    name = "ask-twice"
    roles = ("agent",)

    async def run(self, case: Case, floor: Floor) -> Verdict:
        slots = {"question": case.question, "labels": case.labels, "choices": (), "passage": "", "title": ""}
        ask = partial(floor.ask, "agent/0", "selene/opening", slots, reply=Position)
        answers = {(await ask(path=path)).answer for path in ("plain", "reask")}
        assert len(answers) == 1
        return Verdict(answer=answers.pop(), how="single")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    said = {"answer": "The Flu.", "reasoning": "Because.", "confidence": 0.9}
    server = ScriptedServer({"flu": lambda step, user: said})
    yield server
    server.close()


async def test_a_reply_by_an_alias_is_its_label(server: ScriptedServer, tmp_path: Path) -> None:
    roles = same_model_roles(server.model, persona="[[flu]]")
    held = await run_debates("inline", tmp_path / "run", AskTwice(), [LabelledCase(CASE, 0, "Influenza")], roles)
    assert (held.verdict("c")["answer"], held.verdict("c")["correct"]) == ("Influenza", True)
    turns = held.turns("c")
    assert {path: (turn["answer"], turn["outcome"]) for path, turn in turns.items()} == {
        "plain": ("Influenza", "ok"),
        "reask": ("Influenza", "reasked"),
        "reask~1": (None, "invalid"),
    }
    assert not any("nobody retrieved" in turn["messages"] or "the flu" in turn["messages"] for turn in turns.values())
    (case,) = held.rows("cases")
    assert (case["aliases"], case["documents"]) == ([["the flu"], []], ["A page that nobody retrieved."])


async def test_the_same_reply_without_aliases_cannot_be_read(server: ScriptedServer, tmp_path: Path) -> None:
    bare = LabelledCase(msgspec.structs.replace(CASE, aliases=()), 0, "Influenza")
    roles = same_model_roles(server.model, persona="[[flu]]")
    held = await run_debates("inline", tmp_path / "run", AskTwice(), [bare], roles)
    assert held.verdict("c")["answer"] is None
    assert held.turns("c")["plain"]["failure"] == "unparsable"


def probability(said: str, others: tuple[str, str], answer: str, case: Case) -> float | None:
    tokens = TokenLogprobs(
        tokens=['{"answer": "', said, '"}'],
        logprob=np.log(np.array([1.0, 0.5, 1.0], np.float32)),
        alt_tokens=["", "", "", said, *others, "", "", ""],
        alt_logprob=np.log(np.array([[1, 1, 1], [0.5, 0.3, 0.2], [1, 1, 1]], np.float32)),
    )
    reply = ModelReply("".join(tokens.tokens), "stop", Usage(1, 1), tokens)
    ask = Ask(
        case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, reply=reply_id(Synthesis),
        labels=case.labels, choices=case.choices, aliases=case.aliases,
    )  # fmt: skip
    found = intrinsic_of(reply, answer, ask, "before")
    assert found is not None
    return found.normalised


def test_an_alias_counts_for_its_label_in_the_tokens() -> None:
    assert probability("the flu", ("Influenza", "Cold"), "Influenza", CASE) == pytest.approx(0.8)


def test_a_spelling_of_several_labels_counts_for_none_in_the_tokens() -> None:
    case = Case(id="c", question="?", labels=("A", "B", "C"), choices=("AA", "Aa", "aa"))
    assert probability("aa", ("Aa", "AA"), "C", case) is None
    assert probability("C", ("A", "B"), "C", case) == pytest.approx(0.5)
    assert probability("C", ("A", "B"), "A", case) is None, "another label than the answer that was read"
