"""What a role says beside its sampling reaches wire and fingerprint; what a model does not take reaches neither."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest
from pydantic import BaseModel, ValidationError

from moot.actors.agent.request_fingerprint import (
    constrained_schema,
    earlier_fingerprints,
    fingerprint,
    fingerprint_of_role,
    max_reply_tokens,
    sent_decoding,
)
from moot.actors.agent.roles import RoleBinding
from moot.actors.models.anthropic_wire import encode_request as encode_for_anthropic
from moot.actors.models.early_stop import EarlyStop
from moot.actors.models.interface import fold_system_messages
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_wire import encode_request
from moot.protocols.case import Image
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Ask, Decoding, Message
from moot.protocols.replies import FreeText, Position, Score
from moot.protocols.reply_ids import reply_id

URL = "http://h/v1#m"
POSITION = reply_id(Position)
ASK = Ask(
    case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, labels=("Yes", "No"), reply=POSITION
)
FULL = Ask(
    case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={"a": 1}, reply="m:R", labels=("A", "B"),
    choices=("x", "y"),
)  # fmt: skip
SAID: dict[str, Any] = {
    "seed": 7,
    "stop": ["END"],
    "repetition_penalty": 1.1,
    "reasoning_effort": "low",
    "extra": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}},
}
MESSAGES = [Message("system", "Be brief."), Message("user", "x")]


def test_everything_that_a_role_says_is_sent_also_where_a_protocol_samples_by_itself() -> None:
    binding = RoleBinding(model=URL, **SAID)
    for given in (None, Decoding(temperature=0.9)):
        decoding = sent_decoding(binding, given)
        body = msgspec.json.decode(encode_request("m", MESSAGES, decoding, seed=decoding.seed))
        assert {name: body[name] for name in ("seed", "stop", "repetition_penalty", "reasoning_effort", "top_k")} == {
            "seed": 7, "stop": ["END"], "repetition_penalty": 1.1, "reasoning_effort": "low", "top_k": 5,
        }  # fmt: skip
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
    shown = msgspec.json.decode(encode_for_anthropic("claude-haiku-4-5", MESSAGES, sent_decoding(binding)))
    assert (shown["stop_sequences"], shown["top_k"]) == (["END"], 5)


def test_unset_parameters_are_not_sent() -> None:
    body = msgspec.json.decode(encode_request("m", MESSAGES, sent_decoding(RoleBinding())))
    assert body.keys() == {"model", "messages", "stream", "temperature", "top_p", "max_tokens"}


@pytest.mark.parametrize(
    "key",
    [
        "model", "messages", "stream", "max_tokens", "logprobs", "response_format", "n", "seed",
        "n_predict", "best_of", "guided_json", "grammar", "return_tokens_as_token_ids",
    ],
)  # fmt: skip
def test_extra_may_not_contain_parameters_that_moot_sends(key: str) -> None:
    with pytest.raises(ValidationError, match=key):
        RoleBinding(extra={key: 1})


def test_what_a_model_does_not_take_is_not_sent_and_one_that_thinks_may_write_more() -> None:
    profile = ModelProfile(schemas="openai", reasons=True, omitted=("temperature", "top_p"))
    binding = RoleBinding(model="openai/o4-mini", profile=profile, reasoning_tokens=1000)
    decoding = sent_decoding(binding)
    assert (decoding.temperature, decoding.top_p, decoding.max_tokens) == (None, None, 1400)
    assert max_reply_tokens(binding, decoding) == 400
    assert sent_decoding(RoleBinding()).max_tokens == 400
    held = constrained_schema(binding, "yes", Position, ASK.labels, 400, {})
    assert held is not None
    assert constrained_schema(binding, "yes", FreeText, ASK.labels, 400, {}) is None


def test_the_penalty_of_llama_cpp_has_a_name_of_its_own() -> None:
    binding = RoleBinding(repetition_penalty=1.2, profile=ModelProfile(schemas="llama.cpp", server="llama.cpp"))
    body = msgspec.json.decode(encode_request("m", MESSAGES, sent_decoding(binding)))
    assert body["repeat_penalty"] == 1.2
    assert "repetition_penalty" not in body


def test_a_system_message_is_put_before_the_users() -> None:
    (first, *rest) = fold_system_messages((*MESSAGES, Message("assistant", "y"), Message("user", "z")))
    assert (first.role, first.content) == ("user", "Be brief.\n\nx")
    assert [message.role for message in rest] == ["assistant", "user"]


def mark(ask: Ask = ASK, templates: str = "00", **role: Any) -> str:
    """The fingerprint of an ask; `found` is what the profile of its model says beside the usual."""
    if "found" in role:
        profile = ModelProfile.model_validate({"schemas": "vllm", **role.pop("found")})
        role = {"model": URL, **role, "profile": profile}
    return fingerprint(ask, RoleBinding(**role), templates)


def test_fingerprints_are_those_of_older_records() -> None:
    """From before there were settings, aliases, a choice of APIs, and schemas of local weights."""
    assert mark() == "aa605eed1337436517b303ef079078a7"
    assert mark(FULL) == "39f39719b8bcd8c2f0b786abb0490ca1"
    assert mark(model="openai/m", found={"schemas": "openai"}) == "83a71e606c6291df6ccc0c1701040d88"
    assert mark(model="local/models/m") == "468e6fa56ec23ba3465b3c5fa73059f4"


def test_whatever_a_reply_hangs_on_is_in_the_fingerprint() -> None:
    changes: list[dict[str, Any]] = [
        {"slots": {"a": 2}},
        {"reply": POSITION},
        {"labels": ("B", "A")},
        {"choices": ("y", "x")},
        {"aliases": (("a",), ())},
        {"aliases": ((), ("a",))},
        {"sample": 1},
        {"decoding": Decoding(temperature=0.5)},
        *({"images": tuple(Image("image/png", each) for each in some)} for some in ([b"a"], [b"b"], [b"a", b"b"])),
    ]
    stop = EarlyStop(window=4, statistic="mean", keep="above", bound=-1.0)
    sent = {name: value for name, value in SAID.items() if name != "extra"}
    roles: list[dict[str, Any]] = [
        {},
        *({name: value} for name, value in SAID.items()),
        {"persona": "Be brief."},
        {"early_stop": stop},
        {"model": "openai/m"},
        {"model": "local/models/m"},
        {"base_url": "http://127.0.0.1:1/v1"},
        {"top_logprobs": 5, "found": {}},
        {"top_logprobs": 5, "found": {"logprobs_when_held": False}},
        {"top_logprobs": 5, "found": {"alternatives": 3}},
        *({"found": {"schemas": schemas}} for schemas in ("free", "llama.cpp", "portable")),
        {"found": {"schemas": "free", "folds_system": True}},
        {"found": {"api": "responses"}},
        {"model": "local/models/m", "found": {"schemas": "llguidance", "server": "llguidance"}},
        *(
            {**sent, "found": {"omitted": omitted}}
            for omitted in ((), *((name,) for name in (*sent, "stream_options")))
        ),
    ]
    told = msgspec.structs.replace(FULL, aliases=(("a",), ()))
    found = [mark(**role) for role in roles] + [mark(msgspec.structs.replace(FULL, **change)) for change in changes]
    found += [mark(FULL), mark(FULL, early_stop=stop), mark(told, early_stop=stop), mark(templates="01")]
    assert len(set(found)) == len(found)


def test_what_changes_no_reply_is_not_in_the_fingerprint() -> None:
    free, other = ({"reply": path, "schemas": "free"} for path in (POSITION, reply_id(Score)))
    assert mark(found={"exceptions": [other]}) == mark(found={}) != mark(found={"schemas": "free"})
    assert mark(found={"exceptions": [free]}) == mark(found={"schemas": "free"})
    assert mark(found={"schemas": "free"}) == mark(model=URL)  # is sent what it was always sent
    assert mark(top_logprobs=5, found={"alternatives": 8}) == mark(top_logprobs=5, found={})
    assert mark(found={"api": "chat"}) == mark(found={})
    local: dict[str, Any] = {"model": "local/models/m", "structured": False}
    assert mark(**local) == mark(**local, found={"schemas": "llguidance", "server": "llguidance"})


@pytest.mark.parametrize("name", ["seed", "stop", "repetition_penalty", "reasoning_effort", "stream_options"])
def test_what_is_left_out_is_not_sent(name: str) -> None:
    role = RoleBinding(**SAID, profile=ModelProfile.model_validate({"schemas": "free", "omitted": (name,)}))
    assert name not in msgspec.json.decode(encode_request("m", [], sent_decoding(role), stream=True))


@pytest.mark.parametrize(
    ("model", "profile", "said"),
    [
        (URL, ModelProfile(schemas="free"), False),
        (URL, ModelProfile(schemas="vllm"), True),
        (URL, None, False),  # as before there were profiles
        ("openai/m", None, True),
        ("openai/m", ModelProfile(schemas="openai"), True),
    ],
)
def test_equal_requests_have_equal_fingerprints_whatever_their_roles_say(
    model: str, profile: ModelProfile | None, said: bool
) -> None:
    silent, told = (RoleBinding(model=model, profile=profile, structured=each) for each in (None, said))
    assert fingerprint(ASK, told, "00") == fingerprint(ASK, silent, "00") == fingerprint_of_role(ASK, silent, "00")
    # records in which the role's word counted still fit
    assert fingerprint_of_role(ASK, told, "00") in earlier_fingerprints(ASK, silent, "00")
    assert fingerprint_of_role(ASK, told, "00") in earlier_fingerprints(ASK, told, "00")


@pytest.mark.parametrize(
    ("model", "profile", "said"),
    [(URL, ModelProfile(schemas="vllm"), False), (URL, None, True), ("openai/m", None, False)],
)
def test_an_unconstrained_and_a_constrained_reply_have_different_fingerprints(
    model: str, profile: ModelProfile | None, said: bool
) -> None:
    silent, told = (RoleBinding(model=model, profile=profile, structured=each) for each in (None, said))

    def known(binding: RoleBinding) -> set[str]:
        found = (fingerprint, fingerprint_of_role)
        return {each(ASK, binding, "00") for each in found} | {*earlier_fingerprints(ASK, binding, "00")}

    assert not known(silent) & known(told)


class TableReply(BaseModel):
    """A reply that no schema can hold."""

    cells: dict[str, int]


@pytest.mark.parametrize(
    ("offered", "wanted", "model", "held"),
    [
        ("yes", None, Position, True),
        ("yes", True, Position, True),
        ("yes", False, Position, False),
        ("yes", None, FreeText, False),
        ("yes", True, FreeText, False),
        ("yes", None, TableReply, False),
        ("on request", None, Position, False),
        ("on request", True, Position, True),
        ("no", None, Position, False),
    ],
)
def test_when_a_reply_is_constrained_to_its_schema(
    offered: Literal["no", "on request", "yes"], wanted: bool | None, model: type[BaseModel], held: bool
) -> None:
    assert (constrained_schema(RoleBinding(structured=wanted), offered, model, None, 400, {}) is not None) == held
    # weights on this machine are left free without a profile, as before they could be held
    assert constrained_schema(RoleBinding(model="local/models/m"), "yes", model, None, 400, {}) is None


def test_a_role_that_requires_schemas_refuses_a_reply_that_no_schema_can_constrain() -> None:
    for profile in (None, ModelProfile(schemas="openai")):
        with pytest.raises(ConfigError, match="cells"):
            constrained_schema(RoleBinding(structured=True, profile=profile), "yes", TableReply, None, 400, {})
