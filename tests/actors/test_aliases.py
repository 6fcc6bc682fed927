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
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_wire import encode_request
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import fingerprint, sent_decoding
from moot.protocols.case import Case, Image, LabelledCase
from moot.protocols.floor import Floor
from moot.protocols.messages import Ask, Decoding, Usage, Verdict
from moot.protocols.replies import Position, Score, reply_path

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
POSITION = reply_path(Position)
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


def mark(ask: Ask = ASK, templates: str = "00", **role: Any) -> str:
    """The fingerprint of an ask; `found` is what the profile of its model says beside the usual."""
    if "found" in role:
        profile = ModelProfile.model_validate({"schemas": "vllm", **role.pop("found")})
        role = {"model": "http://h/v1#m", **role, "profile": profile}
        ask = msgspec.structs.replace(ask, reply=POSITION)
    return fingerprint(ask, RoleBinding(**role), templates)


def test_whatever_a_reply_hangs_on_is_in_the_fingerprint() -> None:
    changes: list[dict[str, Any]] = [
        {"slots": {"a": 2}},
        {"reply": POSITION},
        {"labels": ("B", "A")},
        {"choices": ("y", "x")},
        {"sample": 1},
        {"decoding": Decoding(temperature=0.5)},
        *({"images": tuple(Image("image/png", each) for each in some)} for some in ([b"a"], [b"b"], [b"a", b"b"])),
    ]
    sent: dict[str, Any] = {"seed": 7, "stop": ("END",), "repetition_penalty": 1.1, "reasoning_effort": "low"}
    roles: list[dict[str, Any]] = [
        {},
        {"persona": "Be brief."},
        {"model": "openai/m"},
        {"base_url": "http://127.0.0.1:1/v1"},
        {"top_logprobs": 5, "found": {}},
        {"top_logprobs": 5, "found": {"logprobs_when_held": False}},
        {"top_logprobs": 5, "found": {"alternatives": 3}},
        {"found": {"api": "responses"}},
        {**sent, "found": {}},
        *({**sent, "found": {"omitted": (name,)}} for name in (*sent, "stream_options")),
    ]
    asks = [ASK, *(msgspec.structs.replace(ASK, **change) for change in changes)]
    found = [mark(**role) for role in roles] + [mark(ask) for ask in asks[1:]] + [mark(templates="01")]
    assert len(set(found)) == len(found)


def test_what_changes_no_reply_is_not_in_the_fingerprint() -> None:
    free, other = ({"reply": path, "schemas": "free"} for path in (POSITION, reply_path(Score)))
    assert mark(found={"exceptions": [other]}) == mark(found={}) != mark(found={"schemas": "free"})
    assert mark(found={"exceptions": [free]}) == mark(found={"schemas": "free"})
    assert mark(top_logprobs=5, found={"alternatives": 8}) == mark(top_logprobs=5, found={})
    assert mark(found={"api": "chat"}) == mark(found={})
    old = msgspec.structs.replace(ASK, slots={}, labels=("Yes", "No"), choices=())
    # as records from before there was a choice of APIs have it
    assert mark(old, model="openai/m", found={"schemas": "openai"}) == "83a71e606c6291df6ccc0c1701040d88"


@pytest.mark.parametrize("name", ["seed", "stop", "repetition_penalty", "reasoning_effort", "stream_options"])
def test_what_is_left_out_is_not_sent(name: str) -> None:
    role = RoleBinding.model_validate({
        **{"seed": 7, "stop": ("END",), "repetition_penalty": 1.1, "reasoning_effort": "low"},
        "profile": ModelProfile.model_validate({"schemas": "free", "omitted": (name,)}),
    })  # fmt: skip
    assert name not in msgspec.json.decode(encode_request("m", [], sent_decoding(role), stream=True))


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
