"""Settings of groups: what is not given keeps the default of the tree that the group stands in."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from moot.protocols.evince.protocol import Evince
from moot.protocols.evince.settings import EvinceSettings
from moot.protocols.registry import make_protocol


def test_a_group_that_is_given_in_part_keeps_its_other_defaults() -> None:
    settings = EvinceSettings.model_validate({"crit": {"rivals": "capped"}})
    assert (
        (settings.crit.rivals, settings.crit.max_depth) == ("capped", EvinceSettings().crit.max_depth) == ("capped", 0)
    )
    assert EvinceSettings.model_validate({"crit": {"max_depth": 2}}).crit.max_depth == 2


def test_a_group_still_refuses_unknown_keys() -> None:
    with pytest.raises(ValidationError, match="nonesuch"):
        EvinceSettings.model_validate({"crit": {"nonesuch": 1}})


def test_a_protocol_is_made_with_it() -> None:
    protocol = make_protocol("evince", {"crit.weak_points": 1})
    assert isinstance(protocol, Evince)
    assert protocol.settings.crit.max_depth == 0
