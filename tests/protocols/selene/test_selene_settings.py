"""Settings from dotted keys, and what is refused; the registry of protocols."""

from __future__ import annotations

from typing import Any

import pytest

from moot.protocols.errors import ConfigError
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
