"""Aliases of labels and a case's documents: through the floor, into the record, and into no prompt."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from houses import hold, same_for_all
from openai_server import ScriptedServer

from moot.actors.early_stop import EarlyStop
from moot.actors.intrinsic import intrinsic_of
from moot.actors.models.interface import ModelReply, TokenLogprobs
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import fingerprint
from moot.protocols.case import Case, Image, LabelledCase
from moot.protocols.floor import Floor
from moot.protocols.messages import Ask, Decoding, Usage, Verdict
from moot.protocols.replies import Position

ASK = Ask(
    case_id="c",
    attempt=0,
    path="p",
    role="agent/0",
    template="t",
    slots={"a": 1},
    reply="m:R",
    labels=("A", "B"),
    choices=("x", "y"),
)
CASE = Case(
    id="c",
    question="What is it?",
    labels=("Influenza", "Cold"),
    aliases=(("the flu",), ()),
    documents=("A page that nobody retrieved.",),
)


def test_the_fingerprint_of_an_ask_without_aliases_is_what_it_was() -> None:
    assert fingerprint(ASK, RoleBinding(), "00") == "39f39719b8bcd8c2f0b786abb0490ca1"
    told = msgspec.structs.replace(ASK, aliases=(("a",), ()))
    other = msgspec.structs.replace(ASK, aliases=((), ("a",)))
    stopping = RoleBinding(early_stop=EarlyStop(window=4, statistic="mean", keep="above", bound=-1.0))
    bound = [(ask, role) for ask in (ASK, told, other) for role in (RoleBinding(), stopping)]
    assert len({fingerprint(ask, role, "00") for ask, role in bound}) == 6


def test_whatever_a_reply_hangs_on_is_in_the_fingerprint() -> None:
    other: list[dict[str, Any]] = [
        {"slots": {"a": 2}},
        {"reply": "m:S"},
        {"labels": ("B", "A")},
        {"choices": ("y", "x")},
        {"sample": 1},
        {"decoding": Decoding(temperature=0.5)},
        {"images": (Image("image/png", b"red"),)},
        {"images": (Image("image/png", b"blue"),)},
        {"images": (Image("image/png", b"red"), Image("image/png", b"blue"))},
    ]
    asks = [ASK, *(msgspec.structs.replace(ASK, **change) for change in other)]
    roles = [
        RoleBinding(persona="Be brief."),
        RoleBinding(model="openai/m"),
        RoleBinding(base_url="http://127.0.0.1:1/v1"),
    ]
    found = [fingerprint(ask, RoleBinding(), "00") for ask in asks]
    found += [fingerprint(ASK, role, "00") for role in roles] + [fingerprint(ASK, RoleBinding(), "01")]
    assert len(set(found)) == len(found)


class AskTwice:
    """Asks for two positions with the package's opening prompt; the first reply to the second cannot be read."""

    name = "ask-twice"
    roles = ("agent",)
    needs_logprobs = False

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
    roles = same_for_all(server.model, persona="[[flu]]")
    held = await hold("inline", tmp_path / "run", AskTwice(), [LabelledCase(CASE, 0, "Influenza")], roles)
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
    roles = same_for_all(server.model, persona="[[flu]]")
    held = await hold("inline", tmp_path / "run", AskTwice(), [bare], roles)
    assert held.verdict("c")["answer"] is None
    assert held.turns("c")["plain"]["failure"] == "unparsable"


def test_an_alias_counts_for_its_label_in_the_tokens() -> None:
    tokens = TokenLogprobs(
        tokens=['{"answer": "', "the flu", '"}'],
        logprob=np.log(np.array([1.0, 0.5, 1.0], np.float32)),
        alt_tokens=["", "", "", "the flu", "Influenza", "Cold", "", "", ""],
        alt_logprob=np.log(np.array([[1, 1, 1], [0.5, 0.3, 0.2], [1, 1, 1]], np.float32)),
    )
    reply = ModelReply("".join(tokens.tokens), "stop", Usage(1, 1), tokens)
    ask = msgspec.structs.replace(ASK, labels=CASE.labels, choices=(), aliases=CASE.aliases)
    found = intrinsic_of(reply, "Influenza", ask, "before")
    assert found is not None
    assert found.normalised == pytest.approx(0.8)
