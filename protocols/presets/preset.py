"""Preset: the values that a paper states for its protocol, each with its source, and what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from moot.protocols.errors import ConfigError, nearest, unknown_name
from moot.protocols.yaml_file import read_keys_and_values

_SHIPPED = Path(__file__).parent

DecodingKey = Literal["temperature", "top_p", "max_tokens"]
"""Decoding of a role in a preset."""


class _PresetPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StatedValue(_PresetPart):
    """One value that a paper states.

    Attributes:
        value: as the setting takes it; a temperature may be a list, one for each member of the role. None in a decoding
            is the vendor's own default.
        source: location in the paper.
    """

    value: Any
    source: str


class Preset(_PresetPart):
    """Settings that a paper states for its system.

    Attributes:
        protocol: whose settings these are.
        paper: its title.
        settings: by dotted key.
        decoding: by role and key.
        models: what the paper ran on; a preset sets no model.
        open: what a user has to decide, for the paper does not say it, a sentence each.
    """

    protocol: str
    paper: str
    settings: Mapping[str, StatedValue]
    decoding: Mapping[str, Mapping[DecodingKey, StatedValue]] = {}
    models: str
    open: tuple[str, ...]

    def setting_values(self) -> dict[str, Any]:
        """Settings by dotted key."""
        return {key: stated.value for key, stated in self.settings.items()}

    def decoding_values(self, key: DecodingKey) -> dict[str, Any]:
        """Values of one key of the decoding, by role."""
        return {role: stated[key].value for role, stated in self.decoding.items() if key in stated}


def preset_names() -> list[str]:
    """The presets that there are, sorted."""
    return sorted(file.stem for file in _SHIPPED.glob("*.yaml"))


@cache
def find_preset(name: str) -> Preset:
    """The preset of a name.

    Raises:
        ConfigError: there is no such preset, or several are named; names the nearest.
    """
    known = preset_names()
    if len(parts := [part for part in name.split(",") if part.strip()]) > 1:
        near = dict.fromkeys(found for part in parts if (found := nearest(part.strip(), known)))
        raise ConfigError(f"a run takes one preset, not {name!r}: give one of {', '.join(near or known)}")
    if name not in known:
        raise unknown_name("preset", name, known)
    return Preset.model_validate(read_keys_and_values(_SHIPPED / f"{name}.yaml"))


def presets_of(protocol: str) -> dict[str, Preset]:
    """The presets of a protocol by name."""
    found = {name: find_preset(name) for name in preset_names()}
    return {name: preset for name, preset in found.items() if preset.protocol == protocol}
