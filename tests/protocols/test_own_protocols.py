"""A user's own protocol: its possible declarations, and the errors of a mistyped or malformed capability."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

import moot
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case
from moot.protocols.errors import ConfigError
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict
from moot.protocols.own_protocols import ProtocolAdapter, adopt_protocol
from moot.protocols.registry import PROTOCOLS, make_protocol
from moot.protocols.replies import Position


class Own(DebateProtocol):
    """The shortest one."""

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        return Verdict(answer="Yes", how="own")


class Plain:
    """One without the base class."""

    name = "plain"
    roles: ClassVar[list[str]] = ["debater"]
    needs_labels = True
    templates: ClassVar[dict[str, str]] = {"plain/ask": "?"}

    def __init__(self) -> None:
        self.most_members = {"debater": 2}

    def replies_for(self, case: Case) -> dict[str, tuple[type[BaseModel], ...]]:
        """What a case needs."""
        return {"debater": (Position,)} if case.labels else {}

    def effective_settings(self) -> dict[str, int]:
        """What has an effect."""
        return {"rounds": 1}

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        return Verdict(answer="No", how="plain")


@dataclass(frozen=True)
class Frozen(Own):
    """One whose attributes cannot be assigned."""

    rounds: int = 2


CASE: Any = Case(id="c", question="?")
FLOOR: Any = None


def with_(base: type, **attributes: object) -> object:
    """An object of a subclass with these attributes, called `my:Debate`."""
    return type("Debate", (base,), {"__module__": "my", **attributes})()


def test_a_subclass_is_taken_as_it_is_and_named_by_its_class() -> None:
    own = Own()
    assert adopt_protocol(own) is own
    assert own.name == f"{__name__}:Own"
    assert adopt_protocol(Frozen(), "my:Frozen").name == "my:Frozen"
    assert (own.roles, own.needs_logprobs, own.replies_for(CASE)) == (("agent",), False, {})
    assert moot.DebateProtocol is DebateProtocol


def test_a_plain_class_keeps_the_capabilities_it_has_and_gets_the_defaults_of_the_others() -> None:
    made = pickle.loads(pickle.dumps(adopt_protocol(Plain())))
    assert isinstance(made, ProtocolAdapter)
    assert (made.name, made.roles, made.needs_labels, made.needs_claims) == ("plain", ("debater",), True, False)
    assert (made.templates, made.most_members) == ({"plain/ask": "?"}, {"debater": 2})
    assert (made.replies_for(CASE), made.effective_settings()) == ({}, {"rounds": 1})
    assert made.for_encoder("any") is made
    assert asyncio.run(made.run(CASE, FLOOR)).answer == "No"


@pytest.mark.parametrize("base", [Own, Plain])
@pytest.mark.parametrize(
    ("mistyped", "value", "meant"),
    [
        ("need_logprobs", True, "needs_logprobs"),
        ("temperature", {"agent": 0.1}, "temperatures"),
        ("reply_token", {}, "reply_tokens"),
        ("judge_see_pictures", True, "judges_see_pictures"),
        ("for_encoders", lambda self, encoder: self, "for_encoder"),
        ("Setting", BaseModel, "Settings"),
    ],
)
def test_a_mistyped_capability_is_an_error(base: type, mistyped: str, value: object, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        adopt_protocol(with_(base, **{mistyped: value}))
    assert str(caught.value) == f"protocol 'my:Debate': unknown attribute `{mistyped}`; did you mean `{meant}`?"


@pytest.mark.parametrize("base", [Own, Plain])
def test_other_attributes_are_allowed(base: type) -> None:
    own = {
        "rounds": 3,
        "_need_logprobs": True,
        "speak": lambda self: "",
        "sampled": lambda self: 1,
        "Template": Position,
    }
    adopt_protocol(with_(base, **own))
    both: Any = with_(base, sample="sample-claims", samples=4)
    assert adopt_protocol(both).sample == "sample-claims"


@pytest.mark.parametrize("base", [Own, Plain])
def test_a_value_that_a_capability_cannot_have_is_a_protocols_own_state(base: type) -> None:
    own: Any = with_(base, role="a", temperature=0.5)
    own.temperature = 0.7
    adopt_protocol(own)
    own.need_logprobs = True
    with pytest.raises(ConfigError, match="did you mean `needs_logprobs`"):
        adopt_protocol(own)


def test_a_plain_class_may_write_roles_as_a_set_and_leave_a_name_out() -> None:
    adopted = adopt_protocol(with_(Plain, roles={"agent"}, name=None, reply_tokens=None))
    assert (adopted.roles, adopted.reply_tokens, bool(adopted.name)) == (("agent",), {}, True)


@pytest.mark.parametrize("base", [Own, Plain])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("roles", "agent", "`roles` must be Sequence[str], not 'agent'"),
        ("needs_logprobs", "no", "`needs_logprobs` must be bool, not 'no'"),
        ("reply_tokens", {"judge": "long"}, "`reply_tokens` must be Mapping[str, int], not {'judge': 'long'}"),
        ("temperatures", {"agent": "hot"}, "`temperatures` must be Mapping[str, float | Sequence[float] | None], not"),
        ("replies", {"agent": Position}, "`replies` must be Mapping[str, Sequence[type[BaseModel]]], not"),
        ("replies_for", {}, "`replies_for` must be a method, not {}"),
    ],
)
def test_a_capability_of_a_wrong_type_is_an_error(base: type, name: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        adopt_protocol(with_(base, **{name: value}))
    assert str(caught.value).startswith(f"protocol 'my:Debate': {said}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [Own, object(), 3, DebateProtocol])
def test_what_cannot_run_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigError, match="expected a name, or an object with"):
        adopt_protocol(wrong)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_built_in_protocol_declares_itself_well(name: str) -> None:
    made = make_protocol(name)
    assert adopt_protocol(made) is made
    assert (made.name, type(made).Settings) == (name, PROTOCOLS[name].settings_model)
    assert made.roles
