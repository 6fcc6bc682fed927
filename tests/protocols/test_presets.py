"""Presets: every value is one that the protocol takes, and stands below what a user says."""

from __future__ import annotations

import pytest

from moot.protocols.errors import ConfigError
from moot.protocols.presets.preset import find_preset, preset_names, presets_of
from moot.protocols.registry import make_protocol


@pytest.mark.parametrize("name", preset_names())
def test_every_stated_value_is_one_that_the_protocol_takes(name: str) -> None:
    preset = find_preset(name)
    protocol = make_protocol(preset.protocol, preset.setting_values())
    assert set(preset.decoding) <= set(protocol.roles)
    assert preset.open
    assert name in presets_of(preset.protocol)


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="early-token"):
        find_preset("early-tokens")


def test_a_preset_given_as_a_protocol_is_told_from_a_mistyped_one() -> None:
    with pytest.raises(ConfigError, match="--preset early-token"):
        make_protocol("early-token")
