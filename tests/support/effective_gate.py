"""EVINCE as a protocol of one's own that says which of its settings have an effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.protocols.evince.protocol import Evince
from moot.protocols.evince.settings import EvinceSettings


class EffectiveGate(Evince):
    """Without a debate there is no gate."""

    Settings = EvinceSettings

    def effective_settings(self) -> Mapping[str, Any]:
        """The settings, the gate as if it were off where the sides do not answer each other."""
        found = self.settings.model_dump(mode="json")
        return found if self.settings.debates else {**found, "gate": False}
