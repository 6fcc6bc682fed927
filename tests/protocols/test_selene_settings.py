"""Settings from dotted keys, and what is refused; the registry of protocols."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from moot.protocols.case import Case
from moot.protocols.errors import ConfigError
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict
from moot.protocols.registry import PROTOCOLS, make_protocol, read_settings
from moot.protocols.selene.protocol import Selene
from moot.protocols.selene.settings import SeleneSettings


def read(**settings: Any) -> SeleneSettings:
    return read_settings(SeleneSettings, settings, name="selene")


def test_dotted_and_nested_keys_mean_the_same() -> None:
    dotted = read(**{"gate.tau_d": "0.2", "gate.tau_p": "none", "judging.k": 5})
    nested = read(gate={"tau_d": 0.2, "tau_p": None}, **{"judging.k": 5})
    assert dotted == nested
    assert (dotted.gate.tau_d, dotted.gate.tau_p, dotted.judging.k) == (0.2, None, 5)
    assert read(**{"gate.tau_m": False}).gate.tau_m is None
    assert read(**{"gate.intrinsic": None}).gate.intrinsic == "none"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gate.tau_dd": 1}, "unknown setting 'gate.tau_dd': did you mean 'gate.tau_d'?"),
        ({"tau_d": 1}, "did you mean 'gate.tau_d'?"),
        ({"gate": {"tau": {"d": 1}}}, "unknown setting 'gate.tau.d'"),
        ({"gate": 3}, "setting `gate` is a group, not a value: set one of gate.when, gate.tau_d"),
        ({"gate.tau_d": 1, "gate": {"tau_d": 1}}, "setting `gate.tau_d` is given twice"),
        ({"gate.tau_d": "far"}, "setting `gate.tau_d`: expected a number, not 'far'"),
        ({"gate.tau_d": float("nan")}, "setting `gate.tau_d`: "),
        ({"gate.tau_p": 1.5}, "setting `gate.tau_p`: expected at most 1"),
        ({"gate.tau_d": True}, "setting `gate.tau_d`: a number is expected"),
        ({"judging.lam": 2.1}, "setting `judging.lam`: expected at most 2, not 2.1"),
        ({"gate.when": "often"}, "expected 'selective', 'always' or 'never', not 'often'"),
        ({"agents": 0}, "setting `agents`: "),
        ({"agents": 1}, "settings: a debate needs `agents` of at least 2"),
        ({"judging.weighting": "per-variant"}, "setting `judging`: weighting `per-variant` needs `judging.repeats`"),
        ({"gate.when": "never", "both_branches": True}, "settings: `audit_skipped` and `both_branches` need"),
        ({"vote.samples": 2}, "settings: `vote.samples` above 1 needs"),
    ],
)
def test_bad_settings_are_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_protocol("selene", settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_threshold_belongs_to_its_encoder() -> None:
    settings = read(**{"gate.tau_d": 0.35})
    assert settings.for_encoder("hashed-ngrams-512-v1") is settings
    with pytest.raises(ConfigError, match="calibrate"):
        settings.for_encoder("other")
    with pytest.raises(ConfigError, match="'other', not for 'hashed-ngrams-512-v1'"):
        read(**{"gate.tau_d_encoder": "other"}).for_encoder("hashed-ngrams-512-v1")
    for fits in ({"gate.tau_d": None}, {"gate.tau_d": 0.1, "gate.when": "always"}, {"gate.tau_d_encoder": "other"}):
        assert read(**fits).for_encoder("other") == read(**fits)


@pytest.mark.parametrize("given", [{}, {"gate.tau_m": 0.3}, {"both_branches": True}, {"gate.when": "always"}])
def test_the_default_threshold_is_not_carried_over_to_another_encoder(given: dict[str, Any]) -> None:
    fitted = read(**given).for_encoder("other")
    assert (fitted.gate.tau_d, fitted.gate.tau_d_encoder) == (None, "other")
    assert fitted == read(**given, **{"gate.tau_d": None, "gate.tau_d_encoder": "other"})
    assert fitted.for_encoder("other") is fitted


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({}, True),
        ({"gate.intrinsic": "printed"}, True),
        ({"gate.intrinsic": "none"}, False),
        ({"gate.intrinsic": "resampled"}, False),
        ({"gate.tau_m": None}, True),
        ({"gate.tau_m": None, "gate.tau_p": None}, False),
        ({"gate.when": "always"}, False),
    ],
)
def test_logprobs_are_needed_only_where_the_gate_reads_them(settings: dict[str, Any], needs: bool) -> None:
    assert make_protocol("selene", settings).needs_logprobs is needs


def test_every_entry_makes_its_protocol() -> None:
    selene = ["selene", "always-debate", "single-agent", "majority-vote"]
    assert list(PROTOCOLS)[: len(selene)] == selene
    for name, entry in PROTOCOLS.items():
        made = entry.make({})
        assert isinstance(made, Selene) is (name in selene)
        assert made.name == name
        assert entry.description
    assert "CFMAD-like" in PROTOCOLS["always-debate"].description


def test_what_makes_a_baseline_cannot_be_changed() -> None:
    with pytest.raises(ConfigError, match="`agents` is fixed to 1"):
        make_protocol("single-agent", {"agents": 3})
    with pytest.raises(ConfigError, match=r"`gate.when` is fixed to 'always'"):
        make_protocol("always-debate", {"gate.when": "selective"})
    assert make_protocol("single-agent", {"agents": 1}).name == "single-agent"


class _Plain:
    async def run(self, case: Case, floor: Floor) -> Verdict:
        return Verdict(answer="Yes", how="plain")


class _Knobs(BaseModel):
    loud: bool = False


class _Configured:
    Settings = _Knobs
    name = "mine"
    roles = ("debater", "judge")
    needs_logprobs = True

    def __init__(self, settings: _Knobs) -> None:
        self.settings = settings

    async def run(self, case: Case, floor: Floor) -> Verdict:
        return Verdict(answer=str(self.settings.loud), how="mine")


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> str:
    made = ModuleType("my_protocols")
    vars(made).update(Plain=_Plain, Configured=_Configured, NoClass=3)
    monkeypatch.setitem(sys.modules, "my_protocols", made)
    return "my_protocols"


async def test_a_protocol_of_ones_own(module: str) -> None:
    case: Any = Case(id="c", question="?")
    floor: Any = None
    plain = make_protocol(f"{module}:Plain")
    assert (plain.name, plain.roles, plain.needs_logprobs) == ("my_protocols:Plain", ("agent",), False)
    assert (await plain.run(case, floor)).answer == "Yes"
    mine = make_protocol(f"{module}:Configured", {"loud": True})
    assert (mine.name, mine.roles, mine.needs_logprobs) == ("mine", ("debater", "judge"), True)
    assert (await mine.run(case, floor)).answer == "True"


@pytest.mark.parametrize(
    ("path", "settings", "message"),
    [
        ("my_protocols:Gone", {}, "cannot be imported: AttributeError"),
        ("no_such_module_here:X", {}, "cannot be imported: ModuleNotFoundError"),
        ("my_protocols:NoClass", {}, "is not a class with"),
        ("my_protocols:Plain", {"x": 1}, "unknown setting 'x'. Known: none"),
        ("my_protocols:Configured", {"lout": 1}, "unknown setting 'lout': did you mean 'loud'?"),
    ],
)
def test_a_bad_protocol_of_ones_own(module: str, path: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_protocol(path, settings)
    assert message in str(caught.value)
