"""Settings of all protocols: what is refused, in one line; groups in part; and presets."""

from __future__ import annotations

from typing import Any

import pytest

from moot.protocols.errors import ConfigError
from moot.protocols.evince.settings import EvinceSettings
from moot.protocols.presets.preset import find_preset, preset_names, presets_of
from moot.protocols.registry import make_protocol


@pytest.mark.parametrize(
    ("protocol", "settings", "said"),
    [
        ("selene", {"gate.tau_dd": 1}, "unknown setting 'gate.tau_dd': did you mean 'gate.tau_d'?"),
        ("selene", {"tau_d": 1}, "did you mean 'gate.tau_d'?"),
        ("selene", {"gate": {"tau": {"d": 1}}}, "unknown setting 'gate.tau.d'"),
        ("selene", {"gate": 3}, "setting `gate` is a group, not a value: set one of gate.when, gate.tau_d"),
        ("selene", {"gate.tau_d": 1, "gate": {"tau_d": 1}}, "setting `gate.tau_d` is given twice"),
        ("selene", {"gate.tau_d": "far"}, "setting `gate.tau_d`: expected a number, not 'far'"),
        ("selene", {"gate.tau_d": float("nan")}, "setting `gate.tau_d`: "),
        ("selene", {"gate.tau_p": 1.5}, "setting `gate.tau_p`: expected at most 1"),
        ("selene", {"gate.tau_d": True}, "setting `gate.tau_d`: a number is expected"),
        ("selene", {"judging.lam": 2.1}, "setting `judging.lam`: expected at most 2, not 2.1"),
        ("selene", {"gate.when": "often"}, "expected 'selective', 'always' or 'never', not 'often'"),
        ("selene", {"agents": 0}, "setting `agents`: "),
        ("selene", {"agents": 1}, "settings: a debate needs `agents` of at least 2"),
        (
            "selene",
            {"judging.weighting": "per-variant"},
            "setting `judging`: weighting `per-variant` needs `judging.repeats`",
        ),
        ("selene", {"gate.when": "never", "both_branches": True}, "settings: `audit_skipped` and `both_branches` need"),
        ("selene", {"vote.samples": 2}, "settings: `vote.samples` above 1 needs"),
        ("single-agent", {"agents": 3}, "`agents` is fixed to 1"),
        ("always-debate", {"gate.when": "selective"}, "`gate.when` is fixed to 'always'"),
        ("ceda", {"max_turns": 0}, "`max_turns`"),
        ("ceda", {"max_turns": 21}, "`max_turns`"),
        ("ceda", {"evidence.passages": 0}, "`evidence.passages`"),
        ("ceda", {"evidence.least_similarity": 1.0}, "`evidence.least_similarity`"),
        ("ceda", {"evidence.shown": "both"}, "`evidence.shown`"),
        ("ceda", {"vision.prompt": "static"}, "`vision.prompt`"),
        ("ceda", {"context.by": "hand"}, "`context.by`"),
        ("ceda", {"role": "  "}, "`role`"),
        ("ceda", {"instruction": ""}, "`instruction`"),
        ("ceda", {"turns": 3}, "did you mean 'max_turns'"),
        ("constructor-auditor", {"judge.passes": 0}, "judge.passes"),
        ("constructor-auditor", {"judge.passes": 21}, "judge.passes"),
        ("constructor-auditor", {"judge.when": "rarely"}, "judge.when"),
        ("constructor-auditor", {"sections": "some"}, "sections"),
        ("evince", {"crit": {"nonesuch": 1}}, "nonesuch"),
        ("judge-panel", {"rubric": "factul"}, "did you mean 'factual'"),
        ("judge-panel", {"rubric": {"name": "x"}}, "`rubric.instructions`: is missing"),
        ("judge-panel", {"rubric.name": "x"}, "unknown setting 'rubric.name'"),
        ("judge-panel", {"passes": 0}, "`passes`"),
        ("judge-panel", {"passes": 21}, "`passes`"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(protocol: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        make_protocol(protocol, settings)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_group_that_is_given_in_part_keeps_its_other_defaults() -> None:
    settings = EvinceSettings.model_validate({"crit": {"rivals": "capped"}})
    assert (settings.crit.rivals, settings.crit.max_depth) == ("capped", 0)
    assert EvinceSettings().crit.max_depth == 0
    assert EvinceSettings.model_validate({"crit": {"max_depth": 2}}).crit.max_depth == 2
    protocol: Any = make_protocol("evince", {"crit.weak_points": 1})
    assert protocol.settings.crit.max_depth == 0


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


def test_a_preset_given_as_a_protocol_is_distinguished_from_a_mistyped_one() -> None:
    with pytest.raises(ConfigError, match="--preset early-token"):
        make_protocol("early-token")
