"""EVINCE as a user's own protocol that declares which of its settings have an effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.protocols.evince.protocol import Evince
from moot.protocols.evince.settings import EvinceSettings


class EffectiveGate(Evince):
    """EVINCE whose gate has no effect without a debate."""

    Settings = EvinceSettings

    def effective_settings(self) -> Mapping[str, Any]:
        """The settings, with the gate off if the sides do not answer each other."""
        found = self.settings.model_dump(mode="json")
        return found if self.settings.debates else {**found, "gate": False}
