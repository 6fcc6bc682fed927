"""Names that documentation has shown keep working, with a warning."""

from __future__ import annotations

import importlib

import pytest

from moot import RunConfig
from moot.protocols.registry import make_protocol


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("moot.protocols.crit.appraisal", "Document", "CritDocument"),
        ("moot.protocols.rubrics.panel", "Shown", "AssessedReply"),
    ],
)
def test_an_old_name_gives_what_the_new_one_gives(module: str, old: str, new: str) -> None:
    found = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(found, old) is getattr(found, new)
    with pytest.raises(AttributeError, match="Absent"):
        getattr(found, "Absent")  # noqa: B009


def test_the_old_name_of_a_configurations_preset() -> None:
    config = RunConfig(preset="selene")
    with pytest.warns(DeprecationWarning, match="loaded_preset"):
        assert config.stated() == config.loaded_preset()


def test_an_old_value_of_a_setting_is_read_as_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="schedule=two-phase is now called fixed"):
        old = make_protocol("socrasynth", {"schedule": "two-phase"})
    assert old.settings == make_protocol("socrasynth", {"schedule": "fixed"}).settings
