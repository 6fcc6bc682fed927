"""What a role says beside its sampling reaches wire and fingerprint; what a model does not take reaches neither."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from moot.actors.models.anthropic_wire import encode_request as encode_for_anthropic
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_wire import encode_request
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import (
    earlier_fingerprints,
    fingerprint,
    fingerprint_of_role,
    folded,
    held_schema,
    reply_tokens,
    sent_decoding,
)
from moot.protocols.messages import Ask, Decoding, Message
from moot.protocols.replies import FreeText, Position

ASK = Ask(
    case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, labels=("Yes", "No"),
    reply="moot.protocols.replies:Position",
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
    binding = RoleBinding(model="http://h/v1#m", **SAID)
    for given in (None, Decoding(temperature=0.9)):
        decoding = sent_decoding(binding, given)
        body = msgspec.json.decode(encode_request("m", MESSAGES, decoding, seed=decoding.seed))
        assert {name: body[name] for name in ("seed", "stop", "repetition_penalty", "reasoning_effort", "top_k")} == {
            "seed": 7, "stop": ["END"], "repetition_penalty": 1.1, "reasoning_effort": "low", "top_k": 5,
        }  # fmt: skip
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
    shown = msgspec.json.decode(encode_for_anthropic("claude-haiku-4-5", MESSAGES, sent_decoding(binding)))
    assert (shown["stop_sequences"], shown["top_k"]) == (["END"], 5)


def test_nothing_is_sent_and_no_fingerprint_changes_where_nothing_is_said() -> None:
    body = msgspec.json.decode(encode_request("m", MESSAGES, sent_decoding(RoleBinding())))
    assert body.keys() == {"model", "messages", "temperature", "top_p", "max_tokens"}
    # as records from before these settings have it
    assert fingerprint(ASK, RoleBinding(), "00") == "aa605eed1337436517b303ef079078a7"


@pytest.mark.parametrize("name", SAID)
def test_each_setting_is_in_the_fingerprint(name: str) -> None:
    plain = fingerprint(ASK, RoleBinding(), "00")
    assert fingerprint(ASK, RoleBinding(**{name: SAID[name]}), "00") != plain


@pytest.mark.parametrize(
    "key",
    [
        "model", "messages", "stream", "max_tokens", "logprobs", "response_format", "n", "seed",
        "n_predict", "best_of", "guided_json", "grammar", "return_tokens_as_token_ids",
    ],
)  # fmt: skip
def test_extra_may_not_hold_what_moot_sends_itself(key: str) -> None:
    with pytest.raises(ValidationError, match=key):
        RoleBinding(extra={key: 1})


def test_what_a_model_does_not_take_is_not_sent_and_one_that_thinks_may_write_more() -> None:
    profile = ModelProfile(schemas="openai", reasons=True, omitted=("temperature", "top_p"))
    binding = RoleBinding(model="openai/o4-mini", profile=profile, reasoning_tokens=1000)
    decoding = sent_decoding(binding)
    assert (decoding.temperature, decoding.top_p, decoding.max_tokens) == (None, None, 1400)
    assert reply_tokens(binding, decoding) == 400
    assert sent_decoding(RoleBinding()).max_tokens == 400
    held = held_schema(binding, "yes", Position, ASK.labels, 400, {})
    assert held is not None
    assert held_schema(binding, "yes", FreeText, ASK.labels, 400, {}) is None


def test_the_penalty_of_llama_cpp_has_a_name_of_its_own() -> None:
    binding = RoleBinding(repetition_penalty=1.2, profile=ModelProfile(schemas="llama.cpp", server="llama.cpp"))
    body = msgspec.json.decode(encode_request("m", MESSAGES, sent_decoding(binding)))
    assert body["repeat_penalty"] == 1.2
    assert "repetition_penalty" not in body


def test_a_system_message_is_put_before_the_users() -> None:
    (first, *rest) = folded((*MESSAGES, Message("assistant", "y"), Message("user", "z")))
    assert (first.role, first.content) == ("user", "Be brief.\n\nx")
    assert [message.role for message in rest] == ["assistant", "user"]
    plain, without_system = (ModelProfile(schemas="free", folds_system=folds) for folds in (False, True))
    assert len({fingerprint(ASK, RoleBinding(profile=each), "00") for each in (plain, without_system)}) == 2


def test_a_held_reply_and_a_free_one_have_different_fingerprints() -> None:
    free = fingerprint(ASK, RoleBinding(model="http://h/v1#m"), "00")
    found = {
        fingerprint(ASK, RoleBinding(model="http://h/v1#m", profile=ModelProfile(schemas=schemas)), "00")
        for schemas in ("free", "vllm", "llama.cpp", "portable")
    }
    assert free in found  # a model that holds no replies is sent what it was always sent
    assert len(found) == 4


def test_local_weights_are_left_free_without_a_profile_as_before_they_could_be_held() -> None:
    free, held = RoleBinding(model="local/models/m"), ModelProfile(schemas="llguidance", server="llguidance")
    assert held_schema(free, "yes", Position, ASK.labels, 400, {}) is None
    # as records from before have it
    assert fingerprint(ASK, free, "00") == "468e6fa56ec23ba3465b3c5fa73059f4"
    assert fingerprint(ASK, RoleBinding(model="local/models/m", structured=False), "00") == fingerprint(
        ASK, RoleBinding(model="local/models/m", structured=False, profile=held), "00"
    )
    assert fingerprint(ASK, RoleBinding(model="local/models/m", profile=held), "00") != fingerprint(ASK, free, "00")


URL = "http://h/v1#m"


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
def test_a_free_reply_and_a_held_one_never_fit_each_other(model: str, profile: ModelProfile | None, said: bool) -> None:
    silent, told = (RoleBinding(model=model, profile=profile, structured=each) for each in (None, said))

    def known(binding: RoleBinding) -> set[str]:
        found = (fingerprint, fingerprint_of_role)
        return {each(ASK, binding, "00") for each in found} | {*earlier_fingerprints(ASK, binding, "00")}

    assert not known(silent) & known(told)
